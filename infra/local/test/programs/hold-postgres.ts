import { startEmbeddedPostgres } from '../../src/engines/embedded-postgres.ts';

const { pglite } = await startEmbeddedPostgres(process.argv[2]);
await pglite.exec('create table calls (id int); insert into calls values (1), (2)');
await pglite.exec('begin; insert into calls values (3)');
process.stdout.write('committed two, began a third\n');
setInterval(() => {}, 60_000);
