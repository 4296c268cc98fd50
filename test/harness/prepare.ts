import { writeTemplate } from './embedded-template.ts';
import { bundleServices } from './service-bundles.ts';

/** Vitest calls it once before all files. */
export default async function prepare(): Promise<() => Promise<void>> {
  const removers = await Promise.all([writeTemplate(), bundleServices()]);
  return async () => {
    for (const remove of removers) await remove?.();
  };
}
