import type { UsageReport } from '@presign/client';
import { money } from '../../data/format/format.ts';
import { figures } from './table.tsx';

type Row = UsageReport['data'][number];

/** The figures of a report as columns. */
export const CALLS = figures<Row>('Calls', ({ calls }) => calls);
export const FAILED = figures<Row>('Failed', (row) => row.failed_calls);
export const USES = figures<Row>('Uses', ({ uses }) => uses);
export const INPUT = figures<Row>('Input tokens', (row) => row.input_tokens);
export const OUTPUT = figures<Row>('Output tokens', (row) => row.output_tokens);
export const COST = figures<Row>('Cost', ({ cost }) => cost, money);
