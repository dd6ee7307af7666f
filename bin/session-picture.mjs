// Draws a terminal session as an SVG: the picture of the README, and that of a dialogue.

const lineHeight = 20
const characterWidth = 8.43 // of most monospace fonts at 14px
const margin = 18

/** The classes of the styles that begin; 0, 22 and 39 end them. */
const classes = { 1: 'strong', 2: 'faint', 31: 'bad', 32: 'good', 34: 'question', 36: 'answer' }

/**
 * @param {string} transcript of test/transcripts: the lines from its first `tty$ ` on are drawn,
 *   without exit codes
 * @returns {string} light or dark, as the reader prefers
 */
export function pictureOf(transcript) {
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
      `<text x="${margin}" y="${margin + 15 + index * lineHeight}">${styled(line)}</text>`,
  )
  return `<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" width="${width}" height="${height}">
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

/** @param {string} line in which `^[[1m` begins a style */
function styled(line) {
  return line
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll(/\^\[\[(\d+)m/g, (_, code) =>
      code in classes ? `<tspan class="${classes[code]}">` : '</tspan>',
    )
}
