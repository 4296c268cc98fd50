import { PresignError } from '@presign/client';
import { count, money } from '../data/format/format.ts';
import { hasLimits, type Planned, type Url } from '../data/urls.ts';
import { presign } from './api.ts';

/** The answer to the change of one URL. */
export type Changed = {
  /** Stored, and in force as soon as Redis answers. */
  readonly isPending: boolean;
  /** The URL with a later end than its token had. */
  readonly newUrl: string | null;
};

/** Somebody else has changed the URL since it was read. */
export class ChangedMeanwhile extends Error {
  /** The URL in its present state. */
  readonly url: Url;
  constructor(url: Url) {
    const limits = [
      url.cost_limit === null ? 'no limit in dollars' : money(url.cost_limit),
      url.max_uses === null ? 'no limit of uses' : `${count(url.max_uses)} uses`,
    ];
    super(
      `Somebody has changed it meanwhile: it now has ${limits.join(' and ')}. Try again to start from there.`,
    );
    this.url = url;
  }
}

/** Whether a change is stored whose new URL is returned only when Redis answers. The change is then sent again to get the URL. */
export const lacksUrl = ({ fields }: Planned, { isPending, newUrl }: Changed): boolean =>
  isPending && newUrl === null && fields?.expires_at !== undefined;

/**
 * Changes or revokes one URL. The answer may be lost after the change, so a URL that already has its new limits counts as a success.
 * @throws ChangedMeanwhile, PresignError
 */
export async function changeUrl({ url, fields }: Planned): Promise<Changed> {
  const { id, revision } = url;
  if (fields === null) return changedOf(await presign.revokeGrant({ id }));
  const change = (ifRevision: number) => presign.changeGrant({ id, ...fields }, { ifRevision });
  try {
    return changedOf(await change(revision));
  } catch (error) {
    if (isRefused(error)) throw error;
    const now = await presign.getGrant({ id }).catch(() => undefined);
    // This request changes nothing, and returns the new URL again.
    if (now && hasLimits(now, fields)) return changedOf(await change(now.revision));
    throw now && now.revision !== revision ? new ChangedMeanwhile(now) : error;
  }
}

/** Whether an error says that nothing was changed, and why. */
const isRefused = (error: unknown): boolean =>
  error instanceof PresignError &&
  error.code !== 'revision_mismatch' &&
  error.status !== undefined &&
  error.status < 500;

const changedOf = (answer: unknown): Changed => {
  const { status, id, url } = (answer ?? {}) as { status?: unknown; id?: unknown; url?: string | null };
  return { isPending: status === 'pending' && id === undefined, newUrl: url ?? null };
};
