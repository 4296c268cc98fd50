import type { LongText, TextPlaces } from './text-places.ts';

/** The bounds of a JSON text. */
export type Modesty = {
  readonly depth: number;
  readonly parts: number;
  /** The most members of one object. A copy of an object with 100,000 members takes as long as parsing it. */
  readonly members?: number;
};

/** Where a text exceeds its bounds: the name of the member at the top level, if it is within one. */
export type Excess = { readonly member: string | undefined };

/** A member of the object that a text is: where its name begins, and where its value begins and ends. */
export type Member = {
  readonly name: string;
  readonly at: number;
  readonly valueAt: number;
  readonly end: number;
};

/** Judges the names of a text. Each object and list has a place. Within an undefined place names are only compared with each other. */
export type NameJudge<P> = {
  /** The place of the whole text. */
  readonly root: P | undefined;
  /** The place of what a name holds. Without a name, that of an element of a list. */
  readonly below: (place: P, name: string | undefined) => P | undefined;
  readonly isUnwanted: (place: P, name: string) => boolean;
};

/** The result of a pass over a JSON text that stays within its bounds. It means something only if the text is valid. */
export type Scan = {
  /** Strings, members, elements and containers. */
  readonly parts: number;
  /**
   * Bytes of the text without white space, and with characters in place of their escapes: at least as many as `JSON.stringify` writes.
   * Undefined: it has a number with an exponent, which may be written longer.
   */
  readonly compactBytes: number | undefined;
  /** The members of the object at the top. */
  readonly members: readonly Member[];
  /**
   * The first name that readers may understand differently, with the names that lead to it (`metadata.tags[2].id`): its object has it
   * twice (RFC 8259 §4), or it is unwanted.
   */
  readonly ambiguous: string | undefined;
  /** Long texts at the places that were asked for. */
  readonly texts: readonly LongText[];
  /** The lists and objects of the names that were asked for. */
  readonly values: readonly TopValue[];
};

/** A list or an object that a member at the top has. */
export type TopValue = Figures & {
  readonly name: string;
  /** Where its bytes begin and end. */
  readonly start: number;
  readonly end: number;
  /** Its value, if these bytes are known. They were not scanned again. */
  readonly known: KnownValue | undefined;
};

/** The figures of a value in a scan. */
export type Figures = {
  readonly parts: number;
  readonly depth: number;
  /** Bytes that a compact text has not. */
  readonly spared: number;
  readonly hasExponent: boolean;
};

/** A value that was read before. No name of it is ambiguous. */
export type KnownValue = Figures & { readonly bytes: Uint8Array; readonly value: unknown };

export type KnownValues = {
  /** The names of members whose values may be known. */
  readonly names: ReadonlySet<string>;
  /** The known value whose bytes begin here. */
  readonly at: (json: Uint8Array, start: number) => KnownValue | undefined;
};

/** Parts of a JSON text that its reader can do without. */
export type LeftOutParts = {
  readonly texts?: TextPlaces | undefined;
  readonly values?: KnownValues | undefined;
};
