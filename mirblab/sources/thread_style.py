"""thread_style: how a thread's page looks, light and dark, wide and narrow, and what its policy lets the browser do."""

from __future__ import annotations

import base64
import hashlib

STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --paper: #fff; --soft: #59636e; --line: #d1d9e0; --tint: #f3f5f8;
  --good: #116329; --link: #0550ae; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0f1318; --soft: #9aa4af; --line: #323a44;
  --tint: #1a2028; --good: #56d364; --link: #6cb6ff; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem 1.25rem 3rem; max-width: 50rem; color: var(--ink); background: var(--paper);
  font: 1rem/1.6 system-ui, sans-serif; overflow-wrap: break-word; }
h1 { font-size: 1.5rem; line-height: 1.3; margin: .5rem 0 1rem; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; border-bottom: 1px solid var(--line); padding-bottom: .25rem; }
a { color: var(--link); }
math { font-size: 1.08em; font-family: "STIX Two Math", "Latin Modern Math", "Cambria Math", "Libertinus Math",
  "TeX Gyre Termes Math", "DejaVu Math TeX Gyre", "Noto Sans Math", math, serif; }
.display { display: block; overflow-x: auto; text-align: center; margin: .6rem 0; padding: .1rem 0; }
.wide { display: inline-block; max-width: 100%; overflow: auto hidden; vertical-align: middle; padding: .1rem 0; }
.post { display: grid; grid-template-columns: 6rem minmax(0, 1fr); gap: 0 1rem; padding: 1rem 0; }
.post.bare { display: block; }
.post + .post { border-top: 1px solid var(--line); }
.side { text-align: center; color: var(--soft); }
.side .small { display: block; line-height: 1.35; }
.body > :first-child { margin-top: 0; }
.score { display: block; font-size: 1.4rem; line-height: 1.3; color: var(--ink); font-variant-numeric: tabular-nums; }
.small, .meta { font-size: .85rem; color: var(--soft); }
.accepted { display: block; color: var(--good); font-weight: 600; font-size: .85rem; }
.tags { list-style: none; display: flex; flex-wrap: wrap; gap: .4rem; padding: 0; margin: .75rem 0 0; }
.tags li { background: var(--tint); border: 1px solid var(--line); border-radius: .3rem; padding: 0 .5rem;
  font-size: .85rem; }
.comments { list-style: none; margin: .75rem 0 0; padding: .25rem 0 0; font-size: .9rem; }
.comments li { border-top: 1px solid var(--line); padding: .35rem 0; }
pre, blockquote, table { overflow-x: auto; max-width: 100%; }
pre { background: var(--tint); padding: .75rem; border-radius: .3rem; }
code { font: .9em ui-monospace, monospace; background: var(--tint); padding: .05rem .25rem; border-radius: .2rem;
  overflow-wrap: anywhere; }
pre code { padding: 0; }
blockquote { margin: .75rem 0; padding: 0 1rem; border-left: 3px solid var(--line); color: var(--soft); }
table { border-collapse: collapse; display: block; }
th { white-space: nowrap; }
td, th { border: 1px solid var(--line); padding: .2rem .6rem; text-align: left; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
@media (max-width: 34rem) { .post { grid-template-columns: minmax(0, 1fr); }
  .side { display: flex; gap: .75rem; align-items: baseline; text-align: left; } }
@media print { body { max-width: none; } }
"""
_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
POLICY = f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'"
