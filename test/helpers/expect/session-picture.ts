// Draws a terminal session as an SVG. The README and the page about imports show such pictures, and
// a test draws them again from the transcripts that it checks, so that they stay true.

const lineHeight = 20
const characterWidth = 8.43 // This is the width in most monospace fonts at 14px.
const margin = 18

/**
 * The classes of the styles that begin with these ANSI codes. The codes 0, 22 and 39 end a style.
 */
const classes: Record<string, string> = {
  1: 'strong',
  2: 'faint',
  31: 'bad',
  32: 'good',
  34: 'question',
  36: 'answer',
}

/**
 * Draws the lines of a transcript from its first `tty$ ` on, without exit codes.
 *
 * @param transcript in the format of test/transcripts
 * @returns an SVG that is light or dark, as the reader prefers
 */
export function drawSession(transcript: string): string {
  const [, session = ''] = /^(tty\$ .*)/ms.exec(transcript) ?? []
  const lines = session
    .trim()
    .replaceAll(/^\[\d+\]\n/gm, '')
    .replaceAll(/^tty\$/gm, '^[[2m$^[[22m')
    .replaceAll(/^! /gm, '')
    .split('\n')
  const columns = Math.max(...lines.map((line) => line.replaceAll(/\^\[\[\d+m/g, '').length))
  const width = Math.ceil(columns * characterWidth) + 2 * margin
  const height = lines.length * lineHeight + 2 * margin
  const texts = lines.map(
    (line, index) =>
      `<text x="${margin}" y="${margin + 15 + index * lineHeight}">${markStyles(line)}</text>`,
  )
  const size = `width="${width}" height="${height}"`
  return `<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" ${size}>
<title>A terminal session</title>
<style>
rect { fill: #f6f8fa; stroke: #d1d9e0 }
text { fill: #1f2328; font: 14px ui-monospace, Menlo, Consolas, monospace; white-space: pre }
.strong { font-weight: bold }
.faint { fill: #59636e }
.bad { fill: #cf222e }
.good { fill: #1a7f37 }
.question { fill: #0969da }
.answer { fill: #1b7c83 }
@media (prefers-color-scheme: dark) {
  rect { fill: #151b23; stroke: #3d444d }
  text { fill: #f0f6fc }
  .faint { fill: #9198a1 }
  .bad { fill: #f85149 }
  .good { fill: #3fb950 }
  .question { fill: #4493f8 }
  .answer { fill: #39c5cf }
}
</style>
<rect x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="6"/>
${texts.join('\n')}
</svg>
`
}

/**
 * Replaces the codes of styles by elements of SVG.
 *
 * @param line in which a text such as `^[[1m` begins a style
 */
function markStyles(line: string): string {
  return line
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll(/\^\[\[(\d+)m/g, (_, code) =>
      code in classes ? `<tspan class="${classes[code]}">` : '</tspan>',
    )
}
