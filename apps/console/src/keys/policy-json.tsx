import type { KeyPolicy } from '@presign/client';
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { draftOf, parse, policyOf } from './policy-draft.ts';

type JsonProps = {
  readonly policy: KeyPolicy | null;
  readonly onChange: (value: Readonly<Record<string, unknown>>) => void;
};

const NOT_JSON = 'Expected a JSON object, such as {"providers": ["openai"]}, or nothing.';

const write = (policy: KeyPolicy | null): string => (policy === null ? '' : JSON.stringify(policy, null, 2));

/** The object of a text. Undefined: it has another form. */
function read(text: string): Readonly<Record<string, unknown>> | undefined {
  const value = text.trim() === '' ? {} : parse(text);
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, unknown>>)
    : undefined;
}

/** The policy as JSON. The JSON and the controls update each other. */
export function PolicyJson({ policy, onChange }: JsonProps) {
  const id = useId();
  const area = useRef<HTMLTextAreaElement>(null);
  /** The typed text and its policy. The text is kept until a control changes the policy. */
  const [typed, setTyped] = useState<{ readonly text: string; readonly policy: string }>();
  const written = write(policy);
  const text = typed?.policy === written ? typed.text : written;
  useLayoutEffect(() => area.current?.setCustomValidity(read(text) ? '' : NOT_JSON), [text]);
  const type = (next: string) => {
    const value = read(next);
    setTyped({ text: next, policy: value ? write(policyOf(draftOf(value))) : written });
    if (value) onChange(value);
  };
  return (
    <details>
      <summary>As JSON</summary>
      <p class="field">
        <label for={id}>The policy as JSON</label>
        <textarea
          ref={area}
          id={id}
          rows={10}
          spellcheck={false}
          value={text}
          onInput={(event) => type(event.currentTarget.value)}
        />
      </p>
    </details>
  );
}
