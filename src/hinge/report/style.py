"""Style sheet and script of the page: for wide and narrow screens, light and dark mode, and print."""

STYLE = """
:root{--ink:#1d2433;--soft:#5c667a;--line:#e3e7ee;--page:#f6f7fa;--card:#fff;--mark:#eef3ff;
--c0:#2f6fed;--c1:#e4572e;--c2:#1a9e77;--c3:#8c5bd6;--c4:#c79a00;--c5:#5c667a;--warn:#9a5b00;--warnbg:#fff5e0}
@media (prefers-color-scheme:dark){:root{--ink:#e7ebf3;--soft:#9aa6bd;--line:#2b3446;--page:#10151f;--card:#18202d;
--mark:#1c2a48;--c0:#6fa1ff;--c1:#ff8a66;--c2:#4fcfa5;--c3:#b794f6;--c4:#e5c04a;--c5:#9aa6bd;--warn:#ffcf80;
--warnbg:#33270f}}
*{box-sizing:border-box}html{scroll-behavior:smooth;-webkit-text-size-adjust:100%}
body{margin:0;background:var(--page);color:var(--ink);font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:74rem;margin:0 auto;padding:1.2rem 1rem 4rem}
header{padding:1.6rem 0 .4rem}h1{font-size:clamp(1.5rem,4vw,2.2rem);line-height:1.2;margin:0 0 .3rem;letter-spacing:-.01em}
h2{font-size:1.25rem;margin:2.4rem 0 .7rem;letter-spacing:-.005em}h3{font-size:1rem;margin:1rem 0 .4rem}
p{margin:.4rem 0 .8rem}.soft{color:var(--soft)}a{color:var(--c0)}
nav{display:flex;flex-wrap:wrap;gap:.35rem .9rem;font-size:.9rem;padding:.6rem 0;border-bottom:1px solid var(--line)}
nav a{text-decoration:none}
.card{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:1rem 1.1rem;margin:.8rem 0}
.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,30rem),1fr));gap:.9rem}
.grid>.card{margin:0}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr));gap:.7rem;margin:1rem 0}
.tile{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:.75rem .9rem}
.tile b{display:block;font-size:1.45rem;line-height:1.25;font-variant-numeric:tabular-nums}.tile span{color:var(--soft);font-size:.86rem}
.lead{font-size:1.13rem;margin:1rem 0 .2rem;max-width:52rem}.lead p{margin:.25rem 0}
.grid.small{grid-template-columns:repeat(auto-fit,minmax(min(100%,21rem),1fr))}.grid.small svg text{font-size:17px}
.costs{display:flex;flex-wrap:wrap;gap:.5rem 1.4rem}input{font:inherit;width:6rem;padding:.15rem .4rem;border:1px solid var(--line);
border-radius:6px;background:var(--page);color:var(--ink)}.advice{font-weight:600}
.formula{font-family:"STIX Two Math","Cambria Math",Georgia,serif;font-size:1.12rem;background:var(--mark);border-radius:8px;
padding:.7rem .9rem;overflow-x:auto;white-space:pre-wrap}
h3:first-child{margin-top:0}.scroll{overflow-x:auto}.card{min-width:0;overflow-wrap:anywhere}table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums;font-size:.93rem}
th,td{text-align:left;padding:.38rem .7rem .38rem 0;border-bottom:1px solid var(--line);vertical-align:top;white-space:nowrap}
td.wrap{white-space:normal;min-width:12rem}td.model{white-space:normal;min-width:8.5rem}td .soft{font-weight:400;font-size:.88em}th{color:var(--soft);font-weight:600}.num{text-align:right}
.num+td:not(.num),.num+th:not(.num){padding-left:1rem}td.name{white-space:normal}
tr.chosen td{background:var(--mark);font-weight:600}tr.out td{color:var(--soft)}
figure{margin:0}figcaption{font-weight:600;margin-bottom:.35rem}svg{width:100%;max-width:640px;height:auto;display:block;overflow:visible;margin:0 auto}
svg .grid{stroke:var(--line);stroke-width:1}
svg text{font:12px system-ui,sans-serif;fill:var(--soft);pointer-events:none}svg text.label{fill:var(--soft)}svg text.name{fill:var(--ink);font-size:12.5px}
svg text.count{fill:var(--ink);font-size:12px}svg text.count.on{fill:#fff}
.line{fill:none;stroke-width:2.2;stroke-linejoin:round}.dash{stroke-dasharray:5 5;stroke-width:1.4}.band{opacity:.16}
.point{opacity:.5}.mark{opacity:.95}.ghost{fill:transparent}.whisker{stroke:var(--ink);stroke-width:1.3;fill:none;opacity:.75}
.s0{stroke:var(--c0)}.s1{stroke:var(--c1)}.s2{stroke:var(--c2)}.s3{stroke:var(--c3)}.s4{stroke:var(--c4)}.s5{stroke:var(--c5)}
.f0{fill:var(--c0);background:var(--c0)}.f1{fill:var(--c1);background:var(--c1)}.f2{fill:var(--c2);background:var(--c2)}
.f3{fill:var(--c3);background:var(--c3)}.f4{fill:var(--c4);background:var(--c4)}.f5{fill:var(--c5);background:var(--c5)}
.bar{opacity:.82}[data-t]{cursor:crosshair}[data-t]:hover{opacity:1;stroke:var(--ink);stroke-width:1.2}
.legend{display:flex;flex-wrap:wrap;gap:.2rem 1rem;font-size:.86rem;color:var(--soft);margin-bottom:.2rem}
.key{display:inline-block;width:.75rem;height:.75rem;border-radius:3px;margin-right:.35rem;vertical-align:-1px}
.say{display:flex;gap:.7rem;align-items:baseline;padding:.5rem 0;border-bottom:1px solid var(--line)}.say:last-child{border:0}
.code{flex:none;font:600 .8rem ui-monospace,monospace;background:var(--warnbg);color:var(--warn);border-radius:6px;padding:.1rem .45rem;text-decoration:none}
pre{background:var(--page);border:1px solid var(--line);border-radius:8px;padding:.7rem .9rem;white-space:pre-wrap;overflow-wrap:anywhere;font-size:.88rem;line-height:1.45}
ul{padding-left:1.2rem;margin:.3rem 0}li{margin:.25rem 0}dl.cures dt{font-weight:600;margin-top:.9rem}dl.cures dd{margin:.15rem 0 0}
dl.cures :target,dt:target{background:var(--warnbg)}
#tip{position:fixed;pointer-events:none;background:var(--ink);color:var(--page);padding:.28rem .55rem;border-radius:6px;
font-size:.84rem;max-width:20rem;opacity:0;transition:opacity .1s;z-index:9}
footer{color:var(--soft);font-size:.88rem;margin-top:2.5rem}
@media (max-width:34rem){body{font-size:15px}main{padding:.6rem .7rem 3rem}.card{padding:.8rem .75rem}svg text{font-size:16.5px}
svg text.name{font-size:16.5px}svg.table text,svg.table text.name{font-size:12.5px}}
@media print{:root{--page:#fff;--card:#fff;--ink:#000;--soft:#444;--line:#ccc;--mark:#f2f4f8}nav,#tip{display:none}
.card,figure,tr{break-inside:avoid}h2{break-after:avoid}main{max-width:none;padding:0}body{font-size:11pt}
.grid{grid-template-columns:1fr 1fr}.scroll{overflow:visible}table{font-size:8.5pt}
td.wrap,td.model{min-width:0}th,td{white-space:normal;padding-right:.4rem}*{-webkit-print-color-adjust:exact;print-color-adjust:exact}}
"""

SCRIPT = """
(function(){var tip=document.getElementById("tip");
function show(e){var t=e.target.closest&&e.target.closest("[data-t]");if(!t){tip.style.opacity=0;return}
var p=e.touches?e.touches[0]:e;tip.textContent=t.getAttribute("data-t");tip.style.opacity=1;
var w=tip.offsetWidth,h=tip.offsetHeight,x=Math.min(Math.max(p.clientX+12,6),innerWidth-w-6),y=p.clientY-h-12;
if(y<6)y=p.clientY+16;tip.style.left=x+"px";tip.style.top=y+"px"}
document.addEventListener("mousemove",show);document.addEventListener("touchstart",show,{passive:true})})();
"""
