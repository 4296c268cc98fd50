/** Whether a path matches a grant. */
export type PathMatcher = (path: string) => boolean;

/**
 * Compiles a grant's path patterns once. `*` stands for one or more characters except `/`. Segments are compared decoded, so
 * that `%3A` is `:`, and an encoded slash is part of its segment. Matching does not backtrack: it looks for each piece between stars once, from left to right,
 * so a match takes at most pattern length × path length steps.
 */
export function compilePaths(patterns: readonly string[]): PathMatcher {
  const exact = new Set(patterns.filter((pattern) => !pattern.includes('*')));
  const compiled = patterns
    .filter((pattern) => /[*%]/.test(pattern))
    .map((pattern) => pattern.split('/').map((segment) => segment.split('*').map(decodedSegment)));
  const spelled = new Set([...exact].map((pattern) => decodedSegments(pattern).join(SEPARATOR)));
  return (path) => {
    if (exact.has(path)) return true;
    const isEncoded = path.includes('%');
    if (compiled.length === 0 && !isEncoded) return false;
    const segments = decodedSegments(path);
    if (isEncoded && spelled.has(segments.join(SEPARATOR))) return true;
    return compiled.some(
      (pattern) =>
        pattern.length === segments.length &&
        pattern.every((pieces, i) => matchSegment(pieces, segments[i] ?? '')),
    );
  };
}

/** No decoded segment of a path that passes its check contains it. */
const SEPARATOR = '\0';

/** The segments of a path, each decoded by itself. */
const decodedSegments = (path: string): string[] => {
  const segments = path.split('/');
  return path.includes('%') ? segments.map(decodedSegment) : segments;
};

const decodedSegment = (segment: string): string => decoded(segment) ?? segment;

function matchSegment(pieces: readonly string[], segment: string): boolean {
  const first = pieces[0] ?? '';
  const last = pieces.at(-1) ?? '';
  if (pieces.length === 1) return segment === first;
  if (!segment.startsWith(first)) return false;
  let end = first.length;
  for (const piece of pieces.slice(1, -1)) {
    const start = segment.indexOf(piece, end + 1);
    if (start <= end) return false;
    end = start + piece.length;
  }
  return segment.endsWith(last) && segment.length - last.length > end;
}

/** Whether a path can match both patterns. It takes at most the product of the lengths of two segments as steps. */
export function patternsMeet(a: string, b: string): boolean {
  const others = b.split('/');
  const segments = a.split('/');
  return (
    segments.length === others.length &&
    segments.every((segment, i) => segmentsMeet(tokensOf(segment), tokensOf(others[i] ?? '')))
  );
}

/** `*` stands for one character or more: any one, and then any number. */
const tokensOf = (segment: string): readonly string[] =>
  [...segment].flatMap((character) => (character === '*' ? [ANY_ONE, ANY_NUMBER] : [character]));

/** They are no characters of a path. */
const ANY_ONE = '?';
const ANY_NUMBER = ' ';

/** Fills a table from the end: whether what follows index i of one segment meets what follows index j of the other. */
function segmentsMeet(a: readonly string[], b: readonly string[]): boolean {
  let after: boolean[] = [];
  for (let i = a.length; i >= 0; i--) {
    const row: boolean[] = [];
    for (let j = b.length; j >= 0; j--) {
      const [mine, other] = [a[i], b[j]];
      const alike = mine === other || mine === ANY_ONE || other === ANY_ONE;
      row[j] =
        (mine === undefined && other === undefined) ||
        (mine === ANY_NUMBER && (after[j] === true || row[j + 1] === true)) ||
        (other === ANY_NUMBER && (row[j + 1] === true || after[j] === true)) ||
        (mine !== undefined && other !== undefined && alike && after[j + 1] === true);
    }
    after = row;
  }
  return after[0] === true;
}

/**
 * Why a grant may not contain a path, as the end of a sentence that begins with the path. Undefined if it may.
 * Judges a pattern as it judges a call: `*` is an ordinary character of paths (RFC 3986 §3.3).
 */
export const checkPathPattern = (path: string, hasSlashedIds?: SlashedIds): string | undefined =>
  /^https?:/i.test(path)
    ? 'must start with /: give the path alone, without scheme and host'
    : checkCallPath(path, hasSlashedIds);

/** Whether ids with an encoded slash may stand in this path. */
export type SlashedIds = (path: string) => boolean;

/**
 * Why a call's raw path, as received and without its query, is refused. Undefined if it passes.
 * A path that passes reads the same to every server on its way, decoded or not, and is forwarded byte for byte. It has
 * only RFC 3986 pchar and `/`, no empty or dot segments, and no encoded character that a server might decode into a
 * separator, a dot, a control character or another spelling of the same path.
 * @param hasSlashedIds whether this path may hold encoded slashes, as parts of an id (`slashedIdsOf`). Absent: it may not.
 */
export function checkCallPath(path: string, hasSlashedIds?: SlashedIds): string | undefined {
  const slashed = /%2f/i.test(path) && hasSlashedIds?.(path) === true;
  if (slashed && /%2f$/i.test(path)) return 'must not end in an encoded slash';
  // An encoded slash is judged as the slash that a server may decode it into, so it makes no empty or dot segment.
  return checkPlainPath(slashed ? path.replace(/%2f/gi, '/') : path);
}

function checkPlainPath(path: string): string | undefined {
  if (!path.startsWith('/')) return 'must start with /';
  if (path.includes('//')) return 'must not contain //';
  const stray = /[^A-Za-z0-9._~!$&'()*+,;=:@%/-]/u.exec(path)?.[0];
  if (stray !== undefined) return `must not contain ${nameOf(stray)}`;
  if (/%(?![0-9A-Fa-f]{2})/.test(path)) return 'contains % without two hexadecimal digits';
  if (path.split('/').some((segment) => segment === '.' || segment === '..'))
    return 'must not contain . or .. segments';
  if (path.includes('..')) return 'must not contain ..';
  return checkEscapes(path);
}

function checkEscapes(path: string): string | undefined {
  const single = path.match(/%[0-7][0-9A-Fa-f]/g)?.find(isRefusedEscape);
  if (single !== undefined) return `must not contain the encoded form ${single}`;
  const text = decoded(path);
  if (text === undefined) return 'contains percent-encoded bytes that are not UTF-8';
  // C1 control characters, which UTF-8 writes in two bytes.
  if (/[\u0080-\u009f]/.test(text)) return 'must not contain encoded control characters';
  return undefined;
}

/**
 * Encoded forms that must not pass: controls and space, `/ \ ? # %`, and RFC 3986 §2.3's unreserved
 * characters, which §6.2.2.2 lets any server decode (so `%2e%2e` is `..` and `ch%61t` is `chat`).
 */
function isRefusedEscape(escaped: string): boolean {
  const character = String.fromCharCode(Number.parseInt(escaped.slice(1), 16));
  return character <= ' ' || character === '\x7f' || /[\w.~/\\?#%-]/.test(character);
}

function nameOf(character: string): string {
  if (character === ' ') return 'spaces';
  if (character < ' ' || character === '\x7f') return 'control characters';
  return character > '\x7f' ? 'characters outside ASCII' : character;
}

/** The path with its percent-encoded characters decoded. Undefined if they are not UTF-8. */
export function decoded(path: string): string | undefined {
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}

/** Whether a refused path would pass if a doubled part were removed, as in `/v1/v1/chat/completions`. */
export function doubledVersionPrefix(path: string, patterns: readonly string[]): boolean {
  const matches = compilePaths(patterns);
  const segments = path.split('/').slice(1);
  const longest = Math.min(MAX_PREFIX_SEGMENTS, Math.floor(segments.length / 2));
  for (let length = 1; length <= longest; length++) {
    for (
      let start = 0;
      start + 2 * length <= 2 * MAX_PREFIX_SEGMENTS && start + 2 * length < segments.length;
      start++
    ) {
      const once = segments.slice(start, start + length);
      const again = segments.slice(start + length, start + 2 * length);
      if (once.join('/') !== again.join('/')) continue;
      if (matches(`/${segments.toSpliced(start, length).join('/')}`)) return true;
    }
  }
  return false;
}

/**
 * The end of a refused path that repeats the end of an allowed one, as in `/v1/chat/completions/chat/completions`: a base URL that is
 * the whole URL. Undefined: it has none.
 */
export function repeatedEnd(path: string, patterns: readonly string[]): string | undefined {
  const matches = compilePaths(patterns);
  const segments = path.split('/').slice(1);
  const longest = Math.min(MAX_END_SEGMENTS, Math.floor(segments.length / 2));
  for (let length = 1; length <= longest; length++) {
    const end = segments.slice(-length).join('/');
    const once = segments.slice(-2 * length, -length).join('/');
    if (end === once && matches(`/${segments.slice(0, -length).join('/')}`)) return `/${end}`;
  }
  return undefined;
}

/** The longest path that an SDK adds has nine segments (Vertex: `/v1/projects/P/locations/L/publishers/google/models/M:generateContent`). */
const MAX_END_SEGMENTS = 9;

/** The longest prefix of a known base URL has three segments (`/openai/deployments/NAME`). */
const MAX_PREFIX_SEGMENTS = 3;
