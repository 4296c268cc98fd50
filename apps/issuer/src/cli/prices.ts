import { acceptPrices, storedPrices } from '@presign/providers/keep-prices';
import { aligned, type Command, CommandError } from './command.ts';
import { withDatabase } from './stores.ts';

/** `prices …`: the operator's price lists, and what waits for a yes. */
export const PRICES: readonly Command[] = [
  {
    name: 'prices status',
    summary: 'Show the stored price lists, and large drops that wait for you',
    details: ['The bundled list and PROVIDERS_FILE are not stored, and are not shown.'],
    run: async (_given, io) => {
      const stored = await withDatabase(io, (db) => storedPrices(db, Date.now()));
      if (stored.length === 0) io.out('No list of PRICES_FILE or PRICES_URL has been read.');
      for (const { source, good, waiting } of stored) {
        io.out(`${source}: list ${good.id} of ${good.date} is in use`);
        if (!waiting) continue;
        io.out(`${source}: list ${waiting.id} of ${waiting.date} waits: the dearer price of the two counts`);
        const rows = waiting.drops.map(({ vendor, model, unit, from, to }) => [
          ...[vendor, model, unit],
          ...[String(from), String(to)],
        ]);
        for (const line of aligned([['PROVIDER', 'MODEL', 'UNIT', 'FROM', 'TO'], ...rows])) io.out(line);
      }
    },
  },
  {
    name: 'prices accept',
    summary: 'Accept a price list whose large drops wait; services use it with their next reading',
    arguments: ['LIST_ID'],
    run: async (given, io) => {
      const [id = ''] = given.arguments;
      if (!(await withDatabase(io, (db) => acceptPrices(db, id)))) {
        throw new CommandError('LIST_ID: no list of this id waits; see prices status');
      }
      io.out(id);
    },
  },
];
