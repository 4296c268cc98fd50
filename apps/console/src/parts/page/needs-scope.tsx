import type { Scope } from '@presign/client';

/** Says why there is nothing to see or to change here. */
export const NeedsScope = ({ scope, to }: { scope: Scope; to: string }) => (
  <p class="soft">
    This API key lacks the scope {scope}, which is needed to {to}. Sign in with a key that has it.
  </p>
);
