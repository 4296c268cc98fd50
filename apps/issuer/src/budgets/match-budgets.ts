import { randomUUID } from 'node:crypto';
import { budgetValue } from '@presign/schema';
import { sharedBudgets } from '@presign/schema/budget-tables';
import type { Transaction } from '@presign/service/database';
import { and, asc, eq, isNull, sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';

/** A URL, as far as budgets choose by it. */
export type Issued = {
  readonly accountId: string;
  readonly apiKeyId: string;
  readonly virtualKeyId?: string | undefined;
  readonly externalUser?: string | undefined;
  readonly metadata?: Record<string, unknown> | undefined;
  readonly issuedAt: Date;
};

/** The shared budgets of a URL, for good. */
export type Matched = {
  /** Undefined: none. */
  readonly sharedIds: string[] | undefined;
  readonly costLimited: boolean;
  readonly tokenLimited: boolean;
};

/** The budgets of an account that never had one. */
export const NO_BUDGETS: Matched = { sharedIds: undefined, costLimited: false, tokenLimited: false };

type Row = typeof sharedBudgets.$inferSelect;

/**
 * Finds the shared budgets that a new URL draws on, and makes those of its user, or of a value of its metadata, that only a template
 * has so far. A budget of the user or the value takes precedence over a template with the same window.
 */
export async function matchBudgets(tx: Transaction, issued: Issued): Promise<Matched> {
  const found = await findMatching(tx, issued);
  const own = found.filter(({ budget }) => !budget.isTemplate);
  const kinds = new Set(own.map(({ budget }) => kindOf(budget)));
  const templates = found.flatMap(({ budget }) =>
    budget.isTemplate && !kinds.has(kindOf(budget)) ? budget : [],
  );
  if (templates.length > 0) {
    await tx
      .insert(sharedBudgets)
      .values(templates.map((each) => ofTemplate(each, issued)))
      .onConflictDoNothing();
    return matched((await findMatching(tx, issued)).filter(({ budget }) => !budget.isTemplate));
  }
  return matched(own);
}

/** A call meets at most one budget of each kind. */
const kindOf = ({ scope, scopeKey, window }: Row) => JSON.stringify([scope, scopeKey, window]);

/** Live budgets and templates of the account, each with the limit of its template, in one order for all. */
function findMatching(tx: Transaction, issued: Issued) {
  const template = alias(sharedBudgets, 'template');
  const { accountId, scope, scopeKey, scopeValue, isTemplate, window, id, deletedAt } = sharedBudgets;
  // An account may have thousands of budgets, and a URL thousands of metadata, so each selector is looked up in the index.
  const selectors = sql`json_to_recordset(${JSON.stringify(selectorsOf(issued))}::json)
    as given(scope text, key text, value text, template boolean)`;
  const isGiven = sql`${scope} = given.scope and ${scopeKey} = given.key and ${scopeValue} = given.value
    and ${isTemplate} = given.template`;
  return tx
    .select({
      budget: sharedBudgets,
      template: { costLimit: template.costLimitMicrousd, tokens: template.tokenLimit },
    })
    .from(sharedBudgets)
    .innerJoin(selectors, isGiven)
    .leftJoin(template, eq(template.id, sharedBudgets.templateId))
    .where(and(eq(accountId, issued.accountId), isNull(deletedAt)))
    .orderBy(asc(scope), asc(scopeKey), asc(window), asc(id));
}

type Selector = Pick<Row, 'scope'> & { key: string; value: string; template: boolean };

/** The selectors of all budgets and templates that the URL can match. */
function selectorsOf({ apiKeyId, virtualKeyId, externalUser, metadata = {} }: Issued): Selector[] {
  const has = (scope: Row['scope'], value: string | undefined, key = ''): Selector[] =>
    value === undefined ? [] : [{ scope, key, value, template: false }];
  const each = (scope: Row['scope'], key = ''): Selector => ({ scope, key, value: '', template: true });
  const matchable = Object.entries(metadata).filter(isMatchable);
  return [
    ...has('account', ''),
    ...has('api_key', apiKeyId),
    ...has('virtual_key', virtualKeyId),
    ...has('external_user', externalUser),
    ...(externalUser === undefined ? [] : [each('external_user')]),
    ...matchable.flatMap(([key, value]) => [...has('metadata', String(value), key), each('metadata', key)]),
  ];
}

/** Selectors have texts that Postgres can store, of a length that it can index. */
const isMatchable = (entry: [string, unknown]): boolean =>
  entry.every((text) => budgetValue.safeParse(text).success);

type Found = Awaited<ReturnType<typeof findMatching>>;

const matched = (found: Found): Matched => ({
  sharedIds: found.length === 0 ? undefined : found.map(({ budget }) => budget.id),
  costLimited: found.some(
    ({ budget, template }) =>
      ((budget.inherits ? template?.costLimit : budget.costLimitMicrousd) ?? null) !== null,
  ),
  tokenLimited: found.some(
    ({ budget, template }) => ((budget.inherits ? template?.tokens : budget.tokenLimit) ?? null) !== null,
  ),
});

const ofTemplate = (
  template: Row,
  { externalUser = '', metadata = {}, issuedAt }: Issued,
): typeof sharedBudgets.$inferInsert => ({
  ...template,
  id: randomUUID(),
  scopeValue: template.scope === 'metadata' ? String(metadata[template.scopeKey]) : externalUser,
  isTemplate: false,
  templateId: template.id,
  revision: 1,
  inherits: true,
  maxUses: null,
  costLimitMicrousd: null,
  tokenLimit: null,
  createdAt: issuedAt,
});
