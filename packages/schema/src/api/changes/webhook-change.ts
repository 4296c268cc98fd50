import { z } from 'zod';
import { expected } from '../invalid-request.ts';
import { webhookFields } from '../webhooks.ts';
import { hasField } from './key-change.ts';

/** Body of `PATCH /v1/webhooks/{id}`. Fields that are left out stay as they are. */
export const webhookChange = z
  .strictObject(
    {
      url: webhookFields.url.optional().meta({
        description:
          'Where events are sent from now on, also those whose delivery is under way. The secret stays.',
      }),
      events: webhookFields.events
        .nullable()
        .optional()
        .meta({ description: 'Types of events that happen from now on. null: all except audit.entry.' }),
      description: webhookFields.description
        .nullable()
        .optional()
        .meta({ description: 'Your description of it. null: none.' }),
    },
    expected('a JSON object'),
  )
  .refine(hasField, 'expected at least one of url, events and description')
  .meta({ id: 'WebhookChange', minProperties: 1, examples: [{ events: ['grant.revoked', 'audit.entry'] }] });
export type WebhookChange = z.output<typeof webhookChange>;
