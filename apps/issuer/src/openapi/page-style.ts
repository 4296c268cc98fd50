/** The reference page's style. It follows the reader's choice of light or dark. */
export const PAGE_STYLE = `
:root {
  color-scheme: light dark;
  --back: light-dark(#ffffff, #14161a); --panel: light-dark(#f5f6f8, #1c1f25); --line: light-dark(#dfe2e7, #2e333c);
  --text: light-dark(#1c2129, #dfe3ea); --soft: light-dark(#5a6472, #98a2b1); --link: light-dark(#1a56c4, #7fb0ff);
  --get: light-dark(#156c43, #5fd39b); --post: light-dark(#1a56c4, #7fb0ff); --delete: light-dark(#b3261e, #ff9087);
}
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; }
body { margin: 0; background: var(--back); color: var(--text); font: 16px/1.55 system-ui, sans-serif;
  display: grid; grid-template-columns: 17rem minmax(0, 1fr); }
nav { position: sticky; top: 0; height: 100vh; overflow-y: auto; padding: 1.5rem 1.25rem; background: var(--panel);
  border-right: 1px solid var(--line); font-size: .875rem; }
nav strong { font-size: 1.05rem; } nav h2 { margin: 1.25rem 0 .25rem; font-size: .75rem; color: var(--soft);
  text-transform: uppercase; letter-spacing: .05em; }
nav ul { list-style: none; margin: 0; padding: 0; }
nav li a { display: flex; align-items: baseline; overflow-wrap: anywhere; padding: .2rem 0; color: var(--text); text-decoration: none; }
nav li a:hover { color: var(--link); }
main { max-width: 54rem; padding: 2rem 2.5rem 6rem; }
h1 { margin: 0 0 .5rem; font-size: 1.9rem; } main > h2 { margin: 3.5rem 0 0; font-size: 1.45rem; }
h3 { margin: 0; font-size: 1.2rem; } h4 { margin: 1.75rem 0 .5rem; font-size: 1rem; }
h3 a { color: inherit; text-decoration: none; } h3 a:hover { text-decoration: underline; }
a { color: var(--link); } p { margin: .5rem 0; }
section { margin-top: 1.5rem; padding-top: 1.75rem; border-top: 1px solid var(--line); }
code, pre { font: .875em/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
p code, td code { padding: .1em .3em; border-radius: 4px; background: var(--panel); overflow-wrap: anywhere; }
pre { margin: 1rem 0; padding: .9rem 1.1rem; overflow-x: auto; background: var(--panel); border: 1px solid var(--line);
  border-radius: 8px; }
pre code { user-select: all; font-size: .8125rem; }
.route code { font-size: 1rem; background: none; padding: 0; }
.method { display: inline-block; min-width: 3.1rem; margin-right: .35rem; font: 700 .75rem ui-monospace, monospace; }
.method.get { color: var(--get); } .method.post { color: var(--post); } .method.delete { color: var(--delete); }
nav .method { flex: none; min-width: 2.9rem; margin: 0; font-size: .625rem; }
.status { color: var(--get); }
.fields { list-style: none; margin: 0; padding: 0; }
.fields li { padding: .6rem 0; border-top: 1px solid var(--line); }
.fields li:first-child { border-top: 0; }
.fields p { margin: .15rem 0 0; font-size: .9375rem; color: var(--soft); }
.field { overflow-wrap: anywhere; }
.name { font-weight: 700; } .type, .fact { font-size: .8125rem; color: var(--soft); }
.fact { margin-left: .3rem; } .fact::before { content: '· '; }
.required { font-size: .75rem; font-weight: 600; color: var(--delete); }
details { margin-top: .4rem; } summary { cursor: pointer; font-size: .875rem; color: var(--link); }
details > .fields { margin-top: .25rem; padding-left: 1rem; border-left: 2px solid var(--line); }
table { width: 100%; border-collapse: collapse; font-size: .9375rem; }
th, td { padding: .45rem .75rem .45rem 0; border-top: 1px solid var(--line); text-align: left; vertical-align: top; }
tr:first-child > * { border-top: 0; }
th { width: 3.5rem; font-weight: 600; }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
@media (max-width: 52rem) {
  body { grid-template-columns: minmax(0, 1fr); }
  nav { position: static; height: auto; border-right: 0; border-bottom: 1px solid var(--line); }
  main { padding: 1.5rem 1.25rem 4rem; }
}
`;
