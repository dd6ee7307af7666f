// Draws a terminal session as an SVG. The README shows such pictures, and a test draws them again,
// so that they stay true.

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

/** The colors of GitHub: of the background, its border, the text, and of each class. */
const themes = {
  light: {
    ...{ background: '#f6f8fa', border: '#d1d9e0', text: '#1f2328', faint: '#59636e' },
    ...{ bad: '#cf222e', good: '#1a7f37', question: '#0969da', answer: '#1b7c83' },
  },
  dark: {
    ...{ background: '#151b23', border: '#3d444d', text: '#f0f6fc', faint: '#9198a1' },
    ...{ bad: '#f85149', good: '#3fb950', question: '#4493f8', answer: '#39c5cf' },
  },
}

export type Theme = keyof typeof themes

/**
 * Draws the lines of a terminal.
 *
 * @param lines in which a text such as `^[[1m` begins a style
 */
export function drawSession(lines: readonly string[], theme: Theme): string {
  const columns = Math.max(...lines.map((line) => line.replaceAll(/\^\[\[\d+m/g, '').length))
  const width = Math.ceil(columns * characterWidth) + 2 * margin
  const height = lines.length * lineHeight + 2 * margin
  const texts = lines.map(
    (line, index) =>
      `<text x="${margin}" y="${margin + 15 + index * lineHeight}">${markStyles(line)}</text>`,
  )
  const size = `width="${width}" height="${height}"`
  const { background, border, text, faint, bad, good, question, answer } = themes[theme]
  return `<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" ${size}>
<title>A terminal session</title>
<style>
rect { fill: ${background}; stroke: ${border} }
text { fill: ${text}; font: 14px ui-monospace, Menlo, Consolas, monospace; white-space: pre }
.strong { font-weight: bold }
.faint { fill: ${faint} }
.bad { fill: ${bad} }
.good { fill: ${good} }
.question { fill: ${question} }
.answer { fill: ${answer} }
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
