import { type CompiledConfig, compileConfig, type Dialect, MODEL_FIELDS } from '@presign/providers';
import type { Conditions, JsonObject } from '@presign/schema';
import { LRUCache } from 'lru-cache';
import { NameTree } from '../json/names.ts';

/**
 * The part of a policy that bodies are judged and changed by, compiled for the calls of one dialect. Calls do not modify it. The time of a
 * call grows with its body, and not with the policy.
 */
export type CallRules = {
  readonly config: CompiledConfig | undefined;
  /** The models that calls may use. Undefined: all. */
  readonly models: Named | undefined;
  /** The top-level fields that bodies may have. Undefined: all. */
  readonly fields: Named | undefined;
  /** The names whose other spellings are refused. */
  readonly names: NameTree;
};

/** Names that are allowed: as a set, and as they were issued. */
type Named = { readonly has: (name: string) => boolean; readonly all: readonly string[] };

/** The data that rules are compiled from. They never change while a grant lives. */
export type RulesSource = {
  readonly config: JsonObject | undefined;
  readonly models?: readonly string[] | undefined;
  readonly conditions?: Pick<Conditions, 'allowed_fields'> | undefined;
};

/** Whether a policy has rules for bodies. */
export const hasRules = ({ config, models, conditions }: RulesSource): boolean =>
  (config ?? models ?? conditions?.allowed_fields) !== undefined;

/** For calls without rules. */
export const NO_RULES: CallRules = {
  config: undefined,
  models: undefined,
  fields: undefined,
  names: new NameTree(),
};

/** Compiles rules. It takes time that grows with their length. */
export function compileRules({ config, models, conditions }: RulesSource, dialect?: Dialect): CallRules {
  return {
    config: config && compileConfig(dialect, config),
    models: models && named(models),
    fields: conditions?.allowed_fields && named(conditions.allowed_fields),
    names:
      config || models
        ? new NameTree([...settingsOf(dialect), ...(models ? MODEL_NAMES : [])], config && [config])
        : NO_RULES.names,
  };
}

/** A bounded cache of the rules of grants, by grant and dialect. An evicted entry is compiled again. */
export class RulesMemory {
  readonly #ofGrants: LRUCache<string, OfGrant>;

  constructor(maxBytes: number) {
    this.#ofGrants = new LRUCache({ maxSize: maxBytes });
  }

  /** @param source of the rules, called only if they are not cached */
  of(grantId: string, dialect: Dialect | undefined, source: () => RulesSource): CallRules {
    const { byDialect, bytes } = this.#ofGrants.get(grantId) ?? { byDialect: new Map(), bytes: ENTRY_BYTES };
    const known = byDialect.get(dialect);
    if (known) return known;
    const rules = compileRules(source(), dialect);
    const grown = bytes + bytesOf(rules);
    // An entry keeps its size until it is deleted.
    this.#ofGrants.delete(grantId);
    this.#ofGrants.set(grantId, { byDialect: byDialect.set(dialect, rules), bytes: grown }, { size: grown });
    return rules;
  }
}

type OfGrant = { readonly byDialect: Map<Dialect | undefined, CallRules>; readonly bytes: number };

const ENTRY_BYTES = 500;
/** A name of a config is in the tree of names and in the fields of the config. Measured: 340 bytes at most. */
const NAME_BYTES = 400;

const bytesOf = ({ names, models, fields }: CallRules): number =>
  NAME_BYTES * (1 + names.size + (models?.all.length ?? 0) + (fields?.all.length ?? 0));

function named(all: readonly string[]): Named {
  const names = new Set(all);
  return { has: (name) => names.has(name), all };
}

const MODEL_NAMES = MODEL_FIELDS.map((name) => [name]);

/** The paths of a dialect's settings, in every spelling that providers accept. */
const settingsOf = (dialect: Dialect | undefined): (readonly string[])[] =>
  (dialect?.settings ?? []).flatMap(({ at, names, rivals }) => [
    ...[...names, ...(rivals ?? [])].map((name) => [name]),
    ...(at ? [at] : []),
  ]);
