import type { Head } from './call-url.ts';
import { adviceOn, messageIn } from './refusal.ts';

/** Why a call did not pass, in words, with its code and the next step. */
export function Explained({
  head: { status, code },
  text,
}: {
  head: Pick<Head, 'status' | 'code'>;
  text: string;
}) {
  if (code !== null)
    return (
      <p role="alert" class="failed">
        Refused with <b>{code}</b>. {messageIn(text, code)} <span class="advice">{adviceOn(code)}</span>
      </p>
    );
  if (status < 400) return null;
  return (
    <p role="alert" class="failed">
      The provider answered with the status {status}. The answer has its own error.
    </p>
  );
}
