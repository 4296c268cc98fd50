import { fileURLToPath } from 'node:url';
import journal from '../migrations/meta/_journal.json' with { type: 'json' };

/** The folder of the generated SQL migrations. */
export const MIGRATIONS = fileURLToPath(new URL('../migrations', import.meta.url));

/**
 * When the first one was made. If the newest migration of a database is older, a state of development made its tables, and no migration
 * updates them.
 */
export const FIRST_MIGRATION = Math.min(...journal.entries.map(({ when }) => when));

/** When the newest migration of this version was made. */
export const NEWEST_MIGRATION = Math.max(...journal.entries.map(({ when }) => when));
