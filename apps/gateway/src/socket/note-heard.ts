import type { Heard } from './dialects/dialect.ts';
import type { Turn } from './turn.ts';

/** A turn that an event has ended. `over` resolves once it is settled. */
type Ending = { readonly turn: Turn; readonly over: Promise<unknown> };

/** Records an event for its turn. Returns the turn that the event ends. */
export function noteHeard(heard: Heard<Turn>, frame: Buffer): Ending | undefined {
  switch (heard.is) {
    case 'created':
      heard.turn.responseId ??= heard.id;
      heard.turn.heard(frame);
      return undefined;
    case 'part':
      heard.turn?.heard(frame);
      return undefined;
    case 'over':
      heard.turn.heard(frame);
      return { turn: heard.turn, over: heard.turn.over() };
    case 'refused':
      return { turn: heard.turn, over: heard.turn.refused(heard.status, heard.event) };
    case 'failed':
      return { turn: heard.turn, over: heard.turn.broken('failure') };
    default:
      return undefined;
  }
}
