// Draws figures as SVG, light or dark as the reader prefers.

const width = 760
const right = 270 // The labels of lines are there.
const rowHeight = 26
// They can be told apart on light and on dark.
const colours = ['#2da44e', '#218bff', '#d4622d', '#a371f7', '#d44f93', '#8b949e']

/**
 * Draws bars from 0 on, the longest above.
 *
 * @param {string} title with the unit
 * @param {{ label: string, value: number, isOurs: boolean }[]} bars
 */
export function drawBarChart(title, bars) {
  const sortedBars = bars.toSorted((a, b) => b.value - a.value)
  const [left, maximum] = [220, sortedBars[0]?.value ?? 1]
  const rows = sortedBars.map(({ label, value, isOurs }, index) => {
    const [y, length] = [48 + index * rowHeight, (value / maximum) * (width - left - 90)]
    return `${formatText(left - 8, y + 14, label, 'end')}
${formatBar(isOurs, left, y, length)}
${formatText(left + length + 6, y + 14, formatNumber(value))}`
  })
  return formatSvg(title, 60 + sortedBars.length * rowHeight, rows)
}

/**
 * Draws lines over two logarithmic axes.
 *
 * @param {string} title with the unit of y
 * @param {string} unit of x
 * @param {{ label: string, isOurs?: boolean, points: number[][] }[]} lines each point as x and y
 */
export function drawLineChart(title, unit, lines) {
  const [left, top, height] = [70, 56, 420]
  const [xs, ys] = [0, 1].map((axis) =>
    lines.flatMap(({ points }) => points.map((point) => point[axis] ?? 0)),
  )
  const scaleX = createScale(xs, left, width - right)
  const scaleY = createScale(ys, height - 50, top)
  const grid = listPowers(ys).map((y) => {
    const rule = `<path class="grid" d="M${left} ${scaleY(y)}H${width - right}"/>`
    return rule + formatText(left - 8, scaleY(y) + 4, formatNumber(y), 'end')
  })
  const ticks = [...new Set(xs)].map((x) =>
    formatText(scaleX(x), height - 26, formatNumber(x), 'middle'),
  )
  const findEnd = ({ points }) => scaleY(points.at(-1)[1])
  let lowestLabelY = Infinity // The next label must not overlap the one below it.
  const curves = lines
    .toSorted((a, b) => findEnd(b) - findEnd(a))
    .map((line, index) => {
      const colour = colours[index % colours.length]
      const path = line.points.map(([x, y]) => `${scaleX(x)} ${scaleY(y)}`).join('L')
      lowestLabelY = Math.min(findEnd(line) + 4, lowestLabelY - 16)
      const stroke = `stroke="${colour}" stroke-width="${line.isOurs ? 4 : 2}"`
      return `<path fill="none" ${stroke} d="M${path}"/>
${formatText(width - right + 8, lowestLabelY, line.label)}`
    })
  return formatSvg(title, height, [
    ...grid,
    ...ticks,
    formatText(left, height - 6, unit),
    ...curves,
  ])
}

/** Maps values to coordinates, both from the least to the greatest. */
function createScale(values, from, to) {
  const [minimum, maximum] = [Math.min(...values), Math.max(...values)].map(Math.log10)
  const span = maximum - minimum || 1
  return (value) => Number((from + ((Math.log10(value) - minimum) / span) * (to - from)).toFixed(1))
}

function listPowers(values) {
  const [minimum, maximum] = [Math.min(...values), Math.max(...values)].map(Math.log10)
  const first = Math.ceil(minimum)
  return Array.from(
    { length: Math.floor(maximum) - first + 1 },
    (_, index) => 10 ** (first + index),
  )
}

function formatSvg(title, height, parts) {
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">
<title>${escapeText(title)}</title>
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
<text class="title" x="12" y="26">${escapeText(title)}</text>
${parts.join('\n')}
</svg>
`
}

function formatBar(isOurs, x, y, length) {
  const size = `width="${length.toFixed(1)}" height="${rowHeight - 8}"`
  return `<rect class="${isOurs ? 'ours' : 'other'}" x="${x}" y="${y}" ${size}/>`
}

function formatText(x, y, content, anchor = 'start') {
  const attributes = `x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}"`
  return `<text ${attributes}>${escapeText(content)}</text>`
}

function escapeText(content) {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}

function formatNumber(value) {
  return value.toLocaleString('en-US', { maximumSignificantDigits: 3 })
}
