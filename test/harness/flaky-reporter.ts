import type { Reporter, TestCase } from 'vitest/node';

/** Tells of each test that passed only when it was tried again, and why it had not: it is wrong, or the product is. */
export default class FlakyReporter implements Reporter {
  onTestCaseResult(test: TestCase): void {
    if (!test.diagnostic()?.flaky) return;
    const why = test.result().errors?.[0]?.message ?? 'no error';
    console.log(`PASSED AT A SECOND TRY ${test.module.relativeModuleId} > ${test.fullName}: ${why}`);
  }
}
