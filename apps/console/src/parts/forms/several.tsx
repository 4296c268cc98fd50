import type { JSX } from 'preact';
import { useId, useState } from 'preact/hooks';
import { describedBy, Notes, Suggested } from './form.tsx';
import { useProblem } from './problem.ts';

type SeveralProps = {
  readonly label: string;
  /** Its name in the API. */
  readonly param: string;
  readonly hint?: string;
  readonly value: readonly string[];
  readonly suggested?: readonly string[] | undefined;
  readonly onFocus?: () => void;
  readonly onChange: (value: readonly string[]) => void;
};

/** The entered texts of a list, and the text that is being typed, which counts too. */
type Entered = { readonly chosen: readonly string[]; readonly text: string };

const split = (text: string): string[] => text.split(/[\s,]+/).filter(Boolean);
const all = ({ chosen, text }: Entered): string[] => [...new Set([...chosen, ...split(text)])];

/** A list of texts. Enter or a comma ends the typed one. Several can be pasted. */
export function Several({ label, param, hint, value, suggested, onFocus, onChange }: SeveralProps) {
  const id = useId();
  const { message, field } = useProblem<HTMLInputElement>(param);
  const [own, setOwn] = useState<Entered>({ chosen: value, text: '' });
  // The value may have been changed elsewhere.
  const entered = all(own).join('\0') === value.join('\0') ? own : { chosen: value, text: '' };
  const set = (next: Entered) => {
    setOwn(next);
    onChange(all(next));
  };
  const onKeyDown = (event: JSX.TargetedKeyboardEvent<HTMLInputElement>) => {
    if (event.key !== ',' && (event.key !== 'Enter' || entered.text.trim() === '')) return;
    event.preventDefault();
    set({ chosen: all(entered), text: '' });
  };
  const remove = (each: string) => {
    set({ ...entered, chosen: entered.chosen.filter((other) => other !== each) });
    // Its button is gone.
    field.current?.focus();
  };
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {entered.chosen.length > 0 && (
        <ul class="several" aria-label={`${label}, chosen`}>
          {entered.chosen.map((each) => (
            <li key={each}>
              {each}{' '}
              <button type="button" class="quiet" onClick={() => remove(each)}>
                ×<span class="unseen"> Remove {each}</span>
              </button>
            </li>
          ))}
        </ul>
      )}
      <input
        ref={field}
        id={id}
        autocomplete="off"
        spellcheck={false}
        enterkeyhint="done"
        list={suggested && `${id}-list`}
        value={entered.text}
        onFocus={onFocus}
        onKeyDown={onKeyDown}
        onInput={(event) => set({ chosen: entered.chosen, text: event.currentTarget.value })}
        {...describedBy(id, hint, message)}
      />
      {suggested && <Suggested id={`${id}-list`} of={suggested} />}
      <Notes id={id} hint={hint} message={message} />
    </div>
  );
}
