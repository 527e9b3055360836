"""Texts that would run, load or restyle something if a page treated them as markup."""

CANARY = "http://127.0.0.1:9/canary"

TEXTS = [
    "<script>window.hit=1</script>",
    f"<script src='{CANARY}'></script>",
    "<img src=x onerror=window.hit=1>",
    f"<img src='{CANARY}'>",
    "<svg onload=window.hit=1>",
    "<svg><script>window.hit=1</script></svg>",
    f"<svg><image href='{CANARY}'/></svg>",
    f"<iframe src='{CANARY}'></iframe>",
    "<iframe srcdoc='<script>parent.hit=1</script>'></iframe>",
    "<body onload=alert(1)>",
    "<details open ontoggle=window.hit=1>x</details>",
    "<input autofocus onfocus=window.hit=1>",
    "<video><source onerror=window.hit=1></video>",
    "<math><mtext></form><form><mglyph><style></math><img src onerror=window.hit=1>",
    "</pre></code><script>window.hit=1</script>",
    "</textarea><script>alert(1)</script>",
    "'-alert(1)-'",
    '";window.hit=1;//',
    "${window.hit=1}",
    "{{constructor.constructor('window.hit=1')()}}",
    "javascript:window.hit=1",
    "<a href=javascript:window.hit=1>x</a>",
    f"<link rel=stylesheet href='{CANARY}'>",
    "<style>*{display:none!important}</style>",
    f"<style>@import '{CANARY}'</style>",
    "<div style='position:fixed;inset:0;background:red'>",
    f"<meta http-equiv=refresh content='0;url={CANARY}'>",
    f"<base href='{CANARY}'>",
    f"<form action='{CANARY}'><button autofocus>x</button></form>",
    f"<object data='{CANARY}'></object><embed src='{CANARY}'>",
    f"<link rel=prefetch href='{CANARY}'><link rel=preconnect href='{CANARY}'>",
    "<!--><img src=x onerror=window.hit=1>-->",
]
PROTOTYPES = {"__proto__": {"isHit": True}, "constructor": {"prototype": {"isHit": True}}, "toString": 1, "length": -1}
INVISIBLE = "right‮tfel​zero\u0007bell"
