import { readVariable } from '@presign/service';
import { startSandboxLlm } from './llm.ts';

/** The sandbox provider alone, for trying a deployment without a real provider's key. */
const PORT = 8789;

const sandbox = await startSandboxLlm({ host: readVariable(process.env, 'HOST', '0.0.0.0'), port: PORT });
process.stdout.write(`The sandbox provider listens at ${sandbox.url}\n`);
