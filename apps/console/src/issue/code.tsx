import { MCP_TOOLS, type McpPresignAnswer } from '@presign/client';
import { useQuery } from '@tanstack/preact-query';
import { useId, useState } from 'preact/hooks';
import { Answer } from '../parts/page/answer.tsx';
import { readFormat } from './call-url.ts';
import { Copied } from './copied.tsx';
import { McpTools } from './mcp-tools.tsx';
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

/** The settings of MCP clients for a bundle, as the gateway writes them. */
export function BundleSettings({
  bundle: { bundle_url: url, grant_id: grant, servers },
}: {
  bundle: McpPresignAnswer;
}) {
  const id = useId();
  const [format, setFormat] = useState([...MCP_TOOLS.keys()][0] ?? '');
  const settings = useQuery({
    queryKey: ['bundle', grant, format],
    queryFn: () => readFormat(url, format),
    // The settings have the URLs in them.
    gcTime: 0,
  });
  return (
    <>
      <h2>Give it to a client</h2>
      <p class="field">
        <label for={id}>Client</label>
        <select id={id} value={format} onInput={(event) => setFormat(event.currentTarget.value)}>
          {[...MCP_TOOLS.keys()].map((each) => (
            <option key={each} value={each}>
              {each}
            </option>
          ))}
        </select>
      </p>
      <p>
        Paste this into <code>{MCP_TOOLS.get(format)}</code>. Anyone who has it can use the bundle.
      </p>
      <Answer of={settings}>{(text) => <Copied label={`Settings of ${format}`} text={text} />}</Answer>
      <McpTools servers={servers} />
    </>
  );
}
