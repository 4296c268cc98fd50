import type { JSX } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { signIn } from '../api/api.ts';
import { Failed } from '../parts/page/answer.tsx';

/** The names of the local machine, on which `npx -y pnpm@12 start` serves. */
const isLocal = ['localhost', '127.0.0.1', '[::1]'].includes(location.hostname);

/** The API key goes to the issuer and is not kept here: the issuer answers with a cookie that no script can read. */
export function SignIn() {
  const [error, setError] = useState<Error>();
  const field = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => {
    document.title = 'Sign in · Presign';
    field.current?.focus();
  }, []);
  const send = async (event: JSX.TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    try {
      await signIn(String(new FormData(form).get('api_key')).trim());
      form.reset();
      location.reload();
    } catch (cause) {
      setError(cause as Error);
    }
  };
  return (
    <main class="alone">
      <h1>Sign in</h1>
      <form onSubmit={send}>
        <p class="field">
          <label for="api-key">API key</label>
          <input
            ref={field}
            id="api-key"
            name="api_key"
            type="password"
            required
            autocomplete="off"
            spellcheck={false}
            aria-describedby="api-key-hint"
          />
          <small id="api-key-hint" class="soft">
            The console can do what this key can do. The browser does not keep it.
          </small>
        </p>
        <button type="submit" class="main">
          Sign in
        </button>
      </form>
      {error && <Failed error={error} />}
      {isLocal && (
        <p class="soft">
          With <code>npx -y pnpm@12 start</code>, the file <code>.presign/sample-api-key</code> has the key of
          the sample data, and <code>.presign/api-key</code> that of your own account.
        </p>
      )}
    </main>
  );
}
