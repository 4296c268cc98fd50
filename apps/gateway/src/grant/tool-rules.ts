import type { ArgumentCondition, McpArguments, McpServerPolicy } from '@presign/schema';
import { LRUCache } from 'lru-cache';
import { KnownNames } from '../json/names.ts';

/** The policy of an MCP server, compiled for its calls. Calls do not modify it. */
export type ToolRules = {
  readonly server: McpServerPolicy;
  /** The tools that may be called. Undefined: all. */
  readonly allowed: ReadonlySet<string> | undefined;
  /** Every tool that the policy names. */
  readonly tools: KnownNames;
  readonly arguments: ToolArguments;
};

/** The conditions of arguments. */
export type ToolArguments = {
  readonly tools: KnownNames;
  readonly of: ReadonlyMap<string, ArgumentRules>;
};

/** The conditions of the arguments of one tool. */
export type ArgumentRules = {
  readonly names: KnownNames;
  readonly conditions: readonly (readonly [name: string, condition: ArgumentCondition])[];
};

/** Compiles a server's policy. It takes time that grows with the length of its names. */
export function compileTools(server: McpServerPolicy): ToolRules {
  const { tools: allowed, pricing, arguments: conditions = {} } = server;
  const named = [...(allowed ?? []), ...Object.keys(conditions), ...Object.keys(pricing?.tools ?? {})];
  return {
    server,
    allowed: allowed && new Set(allowed),
    tools: new KnownNames(named),
    arguments: compileArguments(conditions),
  };
}

export const compileArguments = (all: McpArguments): ToolArguments => ({
  tools: new KnownNames(Object.keys(all)),
  of: new Map(
    Object.entries(all).map(([tool, conditions]) => [
      tool,
      { names: new KnownNames(Object.keys(conditions)), conditions: Object.entries(conditions) },
    ]),
  ),
});

/** A bounded cache of the rules of grants. An evicted entry is compiled again. */
export class ToolMemory<T extends ToolRules | ToolArguments> {
  readonly #ofGrants: LRUCache<string, T>;

  constructor(maxBytes: number) {
    this.#ofGrants = new LRUCache({
      maxSize: maxBytes,
      sizeCalculation: (rules) => ENTRY_BYTES + ('server' in rules ? bytesOf(rules) : argumentBytes(rules)),
    });
  }

  /** @param compile is called only if the rules are not cached */
  of(grantId: string, compile: () => T): T {
    const known = this.#ofGrants.get(grantId);
    if (known) return known;
    const rules = compile();
    this.#ofGrants.set(grantId, rules);
    return rules;
  }
}

const ENTRY_BYTES = 1_000;

const bytesOf = ({ tools, arguments: conditions }: ToolRules): number =>
  tools.bytes + argumentBytes(conditions);

const argumentBytes = ({ tools, of }: ToolArguments): number =>
  [...of.values()].reduce((sum, { names }) => sum + names.bytes, tools.bytes);
