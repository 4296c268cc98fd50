import { useState } from 'preact/hooks';
import { codeOf, type ShownRequest } from './write-code.ts';

/** The request as code in one of three languages. */
export function Code({ of }: { of: ShownRequest }) {
  const codes = codeOf(of);
  const [chosen, choose] = useState('curl');
  const code = codes.find(([language]) => language === chosen)?.[1] ?? '';
  return (
    <>
      <fieldset class="buttons">
        <legend>Language</legend>
        {codes.map(([language]) => (
          <button
            key={language}
            type="button"
            aria-pressed={language === chosen}
            onClick={() => choose(language)}
          >
            {language}
          </button>
        ))}
      </fieldset>
      <Copied label={`The request in ${chosen}`} text={code} />
      <p class="soft">The code reads your API key and other secrets from the environment.</p>
    </>
  );
}

/** A text to copy. */
export function Copied({ label, text }: { label: string; text: string }) {
  const [copied, setCopied] = useState('');
  const copy = () => navigator.clipboard.writeText(text).then(() => setCopied(text));
  return (
    <>
      <section aria-label={label}>
        <pre>{text}</pre>
      </section>
      <p>
        <button type="button" onClick={copy}>
          {copied === text ? 'Copied' : 'Copy'}
          <span class="unseen"> {label}</span>
        </button>
      </p>
    </>
  );
}
