// Draws figures as SVG, light or dark as the reader prefers.

const width = 760
const right = 270 // of lines, for their labels
const rowHeight = 26
const colours = ['#2da44e', '#218bff', '#d4622d', '#a371f7', '#d44f93', '#8b949e'] // on light and dark

/**
 * Bars from 0 on, the longest above.
 *
 * @param {string} title with the unit
 * @param {{ label: string, value: number, isOurs: boolean }[]} bars
 */
export function barChart(title, bars) {
  const sorted = bars.toSorted((a, b) => b.value - a.value)
  const [left, most] = [220, sorted[0]?.value ?? 1]
  const rows = sorted.map(({ label, value, isOurs }, index) => {
    const [y, length] = [48 + index * rowHeight, (value / most) * (width - left - 90)]
    return `${text(left - 8, y + 14, label, 'end')}
<rect class="${isOurs ? 'ours' : 'other'}" x="${left}" y="${y}" width="${length.toFixed(1)}" height="${rowHeight - 8}"/>
${text(left + length + 6, y + 14, numberOf(value))}`
  })
  return svg(title, 60 + sorted.length * rowHeight, rows)
}

/**
 * Lines over two logarithmic axes.
 *
 * @param {string} title with the unit of y
 * @param {string} unit of x
 * @param {{ label: string, isOurs?: boolean, points: number[][] }[]} lines each point as x and y
 */
export function lineChart(title, unit, lines) {
  const [left, top, height] = [70, 56, 420]
  const [xs, ys] = [0, 1].map((axis) =>
    lines.flatMap(({ points }) => points.map((point) => point[axis] ?? 0)),
  )
  const xOf = scale(xs, left, width - right)
  const yOf = scale(ys, height - 50, top)
  const grid = powersBetween(ys).map((y) => {
    const rule = `<path class="grid" d="M${left} ${yOf(y)}H${width - right}"/>`
    return rule + text(left - 8, yOf(y) + 4, numberOf(y), 'end')
  })
  const ticks = [...new Set(xs)].map((x) => text(xOf(x), height - 26, numberOf(x), 'middle'))
  const endOf = ({ points }) => yOf(points.at(-1)[1])
  let free = Infinity // above which the next label may be
  const drawn = lines
    .toSorted((a, b) => endOf(b) - endOf(a))
    .map((line, index) => {
      const colour = colours[index % colours.length]
      const path = line.points.map(([x, y]) => `${xOf(x)} ${yOf(y)}`).join('L')
      free = Math.min(endOf(line) + 4, free - 16)
      return `<path fill="none" stroke="${colour}" stroke-width="${line.isOurs ? 4 : 2}" d="M${path}"/>
${text(width - right + 8, free, line.label)}`
    })
  return svg(title, height, [...grid, ...ticks, text(left, height - 6, unit), ...drawn])
}

/** From values to coordinates, both from the least to the greatest. */
function scale(values, from, to) {
  const [least, most] = [Math.min(...values), Math.max(...values)].map(Math.log10)
  const span = most - least || 1
  return (value) => Number((from + ((Math.log10(value) - least) / span) * (to - from)).toFixed(1))
}

function powersBetween(values) {
  const [least, most] = [Math.min(...values), Math.max(...values)].map(Math.log10)
  const first = Math.ceil(least)
  return Array.from({ length: Math.floor(most) - first + 1 }, (_, index) => 10 ** (first + index))
}

function svg(title, height, parts) {
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">
<title>${escaped(title)}</title>
<style>
text { fill: #1f2328; font: 13px system-ui, sans-serif }
.title { font-weight: bold }
.background { fill: #fff }
.ours { fill: #1a7f37 }
.other { fill: #afb8c1 }
.grid { stroke: #d1d9e0 }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc }
.background { fill: #0d1117 }
.ours { fill: #3fb950 }
.other { fill: #656c76 }
.grid { stroke: #3d444d }
}
</style>
<rect class="background" width="${width}" height="${height}"/>
<text class="title" x="12" y="26">${escaped(title)}</text>
${parts.join('\n')}
</svg>
`
}

function text(x, y, content, anchor = 'start') {
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}">${escaped(content)}</text>`
}

function escaped(content) {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}

function numberOf(value) {
  return value.toLocaleString('en-US', { maximumSignificantDigits: 3 })
}
