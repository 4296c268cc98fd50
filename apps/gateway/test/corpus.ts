/**
 * Texts from which fuzzing starts: one of each kind, and what once stopped a gateway, was billed beyond a limit or was
 * read in two ways. Keep what fuzzing finds here.
 */
export const BODIES: readonly string[] = [
  '{"model":"gpt-4o-mini","max_tokens":9,"messages":[{"role":"user","content":"Hi é 😀"}],"stream":true}',
  '{"model":"claude-sonnet-4-5","max_tokens":9,"system":[{"type":"text","text":"x"}],"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]}',
  '{"contents":[{"parts":[{"text":"Hi"}]}],"generationConfig":{"maxOutputTokens":9},"generation_config":{}}',
  '{"model":"text-embedding-3-small","input":["a",[1,2,3]],"dimensions":8}',
  '{"model":"rerank-v3.5","query":"x","documents":["a","b"],"top_n":1}',
  `{"model":"claude-sonnet-4-5${'-1234-12-12'.repeat(21)}x","messages":[]}`,
  `{"model":"gpt-4o-mini","messages":[{"content":"${'\u0315\u0316'.repeat(40)}"}]}`,
  `{"model":"gpt-4o-mini","messages":[${'{},'.repeat(40)}{}]}`,
  `{"a":${'['.repeat(80)}${']'.repeat(80)}}`,
  '{"model":"a","Model":"b","max_tokens":1e400,"n":"2","__proto__":{"max_tokens":1}}',
  '{"model":"mistral-ocr-latest","messages":[{"content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}]}',
];

export const STREAMS: readonly string[] = [
  'data: {"a":1}\n\ndata: [DONE]\n\n',
  'event: message_start\r\ndata: {"type":"message_start"}\r\n\r\n: keep-alive\r\n\r\n',
  'data: a\rdata: b\r\rdata: c\n\r\n\r\r\n\n',
  '{"a":1}\n{"b":"\\n"}\r\n',
];

/** Answers of MCP servers to `tools/list`. */
export const LISTS: readonly string[] = [
  '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"shown"},{"name":"hidden","inputSchema":{"enum":["]","}"]}}]}}',
  '[{"result":{"tools":[{"name":"hidden","name":"shown"},1,null]}},{"result":{"t\\u006fols":[{"n\\u0061me":"hidden"}]}}]',
  '{"result":{"tools":[{"name":"sh\\u006fwn"}],"tools":[{"name":"hidden"}]},"result":{"x":{"tools":[]}}}',
];

/** Values of `X-Forwarded-For`. */
export const FORWARDED: readonly string[] = [
  '192.0.2.7, 10.1.2.3',
  '[2001:db8::7]:443, ::ffff:10.0.0.1',
  'unknown, , 10.0.0.1:80, fe80::1%eth0',
];

export const MESSAGES: readonly string[] = [
  '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"deep","arguments":{"x":[1]}}}',
  '{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":["deep"]}}',
  '[{"jsonrpc":"2.0","id":1,"method":"Tools/Call"},{"jsonrpc":"2.0","method":"notifications/initialized"}]',
  '{"jsonrpc":"2.0","id":null,"result":{},"error":{"code":-32601}}',
  '{"jsonrpc":"2.0","id":1,"id":2,"method":"resources/read","params":{"uri":"file:///x","URI":"y"}}',
];
