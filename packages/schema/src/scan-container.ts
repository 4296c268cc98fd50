import type { TextPlace } from './text-places.ts';

/** An object or list that the scan is within. */
export class Container<P> {
  isList = false;
  place: P | undefined = undefined;
  /** Where it is, as far as long texts may be within it. */
  textPlace: TextPlace | undefined = undefined;
  /** Whether a string that comes next is a name. */
  expectsName = false;
  /** Elements or members before the one that the scan is at. */
  index = 0;
  /** The name of the member that the scan is at. */
  nameAt = 0;
  nameEnd = 0;
  /** Its first name in the list of names that few objects compare. */
  firstName = 0;
  /** Its names, once they are many or one has an escape. */
  names: Set<string> | undefined = undefined;
}

/** A value at the top that the scan is within: where it begins, and the counts before it. */
export type BegunValue = {
  readonly at: number;
  readonly parts: number;
  readonly spared: number;
  readonly hadExponent: boolean;
};
