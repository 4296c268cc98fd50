import type { Scope } from '@presign/client';
import { useId } from 'preact/hooks';
import { SCOPE_WORDS } from '../data/scopes.ts';
import { describedBy, Notes } from '../parts/forms/form.tsx';
import { useProblem } from '../parts/forms/problem.ts';

/** Scopes to choose from, with what each allows. */
export function ScopeFields({ of, chosen }: { of: readonly Scope[]; chosen: readonly Scope[] }) {
  const id = useId();
  const { message, field } = useProblem<HTMLFieldSetElement>('scopes');
  return (
    <fieldset ref={field} class="lines" tabIndex={-1} {...describedBy(id, undefined, message)}>
      <legend>Scopes</legend>
      {of.map((scope) => (
        <p key={scope}>
          <label>
            <input
              type="checkbox"
              name={scope}
              aria-describedby={`${id}-${scope}`}
              defaultChecked={chosen.includes(scope)}
            />{' '}
            {scope}
          </label>
          <small id={`${id}-${scope}`} class="soft">
            {SCOPE_WORDS[scope]}
          </small>
        </p>
      ))}
      <Notes id={id} hint={undefined} message={message} />
    </fieldset>
  );
}
