import { type AlertFiring, alertFiringPage, idParams, pageQuery } from '@presign/schema';
import { alertFirings } from '@presign/schema/alert-tables';
import { webhookDeliveries } from '@presign/schema/webhook-tables';
import { and, eq } from 'drizzle-orm';
import { after, micros, newestFirst, pageOfRows } from '../answers/page.ts';
import { unixSeconds } from '../answers/unix-seconds.ts';
import { inTime } from '../middleware/in-time.ts';
import { route } from '../middleware/route.ts';
import { findAlert } from './alerts.ts';

/** `GET /v1/alerts/{id}/firings`: when it fired, and how that was delivered. */
export const listFirings = route(
  {
    method: 'get',
    path: '/v1/alerts/{id}/firings',
    summary: 'List the times that an alert fired, and how each was delivered',
    description: 'A firing stays for 30 days after its end.',
    scope: 'admin',
    params: idParams,
    query: pageQuery,
    answer: alertFiringPage,
    errors: ['not_found'],
  },
  (deps) =>
    async ({ apiKey, params, query: { limit, cursor } }) => {
      const alert = await inTime(findAlert(deps.db, apiKey.accountId, params.id));
      const rows = await inTime(
        deps.db
          .select({
            id: alertFirings.id,
            micros: micros(alertFirings.createdAt),
            firing: alertFirings,
            delivery: webhookDeliveries,
          })
          .from(alertFirings)
          .leftJoin(webhookDeliveries, eq(webhookDeliveries.eventId, alertFirings.id))
          .where(and(eq(alertFirings.alertId, alert.id), after(cursor, alertFirings)))
          .orderBy(...newestFirst(alertFirings))
          .limit(limit + 1),
      );
      return pageOfRows(rows, limit, describeFiring);
    },
);

type Row = {
  readonly firing: typeof alertFirings.$inferSelect;
  readonly delivery: typeof webhookDeliveries.$inferSelect | null;
};

const describeFiring = ({ firing, delivery }: Row): AlertFiring => ({
  id: firing.id,
  fired_at: unixSeconds(firing.createdAt),
  resolved_at: firing.resolvedAt && unixSeconds(firing.resolvedAt),
  value: firing.value,
  threshold: firing.threshold,
  starts_at: firing.startsAt && unixSeconds(firing.startsAt),
  ends_at: firing.endsAt && unixSeconds(firing.endsAt),
  delivery: delivery && {
    status: delivery.status,
    attempts: delivery.attempts,
    last_status: delivery.lastStatus,
    last_error: delivery.lastError,
  },
});
