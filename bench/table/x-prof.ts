import { closedLoop, LOADS, openLoop } from './load.ts';
import { LIMITED, toolServer, UNLIMITED } from './rows.ts';
import { startServices } from './services.ts';

const node = process.env.NODEBIN ?? '/tmp/n/n24-prof';
const kind = (process.env.KIND ?? 'json') as keyof typeof LOADS;
const s = await startServices(process.execPath);
const g = await s.start('gateway', node);
const paths =
  kind === 'mcp'
    ? await s.issue('/v2/mcp-presign', toolServer(s.upstream.port), 1000)
    : await s.issue('/v1/presign', process.env.FREE ? UNLIMITED : LIMITED, 1000);
const t = { name: 'g', origin: g.origin, pid: g.pid, paths };
await s.pauseIssuer(false);
await closedLoop(t, { ...LOADS[kind], connections: 32 }, { calls: 1000 });
await s.pauseIssuer(true);
console.log('warm', await closedLoop(t, LOADS[kind], { seconds: Number(process.env.WARM ?? 10) }));
if (process.env.PROF !== '0') process.kill(g.pid, 'SIGUSR2');
for (let i = 0; i < Number(process.env.N ?? 1); i++)
  console.log(await closedLoop(t, LOADS[kind], { seconds: 6 }));
if (process.env.PROF !== '0') {
  process.kill(g.pid, 'SIGUSR2');
  await new Promise((r) => setTimeout(r, 4000));
  console.log('/tmp/prof/' + g.pid + '.cpuprofile');
}
if (process.env.RATE) for (let i = 0; i < 3; i++) console.log('rate', await openLoop(t, LOADS.json, 400, 6));
process.exit();
