import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { signIn } from '../data/api.ts';
import { Failed, Page } from '../parts/answer.tsx';
import { Field } from '../parts/form.tsx';

/** The API key goes to the issuer and is not kept here: the issuer answers with a cookie that no script can read. */
export function SignIn() {
  const [error, setError] = useState<Error>();
  const send = async (event: JSX.TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    const apiKey = String(new FormData(form).get('api_key')).trim();
    try {
      await signIn(apiKey);
      form.reset();
      location.reload();
    } catch (cause) {
      setError(cause as Error);
    }
  };
  return (
    <main class="alone">
      <Page title="Sign in">
        <form onSubmit={send}>
          <Field
            label="API key"
            name="api_key"
            type="password"
            required
            hint="The console can do what this key can do. The browser does not keep it."
          />
          <button type="submit" class="main">
            Sign in
          </button>
        </form>
        {error && <Failed error={error} />}
      </Page>
    </main>
  );
}
