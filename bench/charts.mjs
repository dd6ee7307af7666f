// Draws the charts of docs/benchmarks.md.
import { BarChart, LineChart } from 'echarts/charts'
import { GridComponent, LegendComponent, TitleComponent } from 'echarts/components'
import { init, use } from 'echarts/core'
import { SVGRenderer } from 'echarts/renderers'

use([BarChart, LineChart, GridComponent, LegendComponent, TitleComponent, SVGRenderer])

const width = 720 // px
// The background of docs/session.svg, which can be read on a light and on a dark page.
const [background, text, faint] = ['#22272e', '#d1d7e0', '#444c56']
const [colours, other] = [['#8ddb8c', '#76e3ea', '#f69d50', '#dcbdfb'], '#768390']
const number = (value) => value.toLocaleString('en-US', { maximumSignificantDigits: 3 })

/**
 * Draws a bar for each row of each series.
 *
 * @param series by their names: rows, each with a `title` and a `value`; `isOther` is one that plants is compared with
 */
export function bars(title, series) {
  const names = Object.keys(series)
  const categories = [...new Set(Object.values(series).flatMap((rows) => rows.map((row) => row.title)))]
  const height = 80 + categories.length * (12 + 16 * names.length)
  return draw(height, {
    title: heading(title),
    legend: { ...legend, show: names.length > 1 },
    grid: { left: 260, right: 72, top: 48, bottom: 16 },
    xAxis: { type: 'value', axisLabel: { show: false }, splitLine: { lineStyle: { color: faint } } },
    yAxis: { type: 'category', inverse: true, data: categories, axisLabel: { color: text }, axisTick: { show: false } },
    series: names.map((name, index) => ({
      ...{ type: 'bar', name, silent: true, barMaxWidth: 16 },
      itemStyle: { color: colours[index] },
      label: { show: true, position: 'right', color: text, formatter: ({ value }) => number(value) },
      data: categories.map((category) => {
        const { value, isOther } = series[name].find((row) => row.title === category) ?? { value: null }
        return isOther ? { value, itemStyle: { color: other } } : { value }
      }),
    })),
  })
}

/**
 * Draws lines over the number of plants: on the left seconds, on the right MB, each an object of points by the names of
 * the lines.
 */
export function growth(title, seconds, megabytes) {
  const panels = [
    { name: 's', lines: seconds, left: 56, type: 'log' },
    { name: 'MB', lines: megabytes, left: width / 2 + 56, type: 'value' },
  ]
  const xAxis = {
    type: 'log',
    splitLine: { show: false },
    axisLabel: { color: text, formatter: (value) => short(value) },
  }
  return draw(340, {
    title: heading(title),
    legend: { ...legend, data: Object.keys(seconds) },
    grid: panels.map(({ left }) => ({ left, width: width / 2 - 88, top: 88, bottom: 32 })),
    xAxis: panels.map((_, gridIndex) => ({ ...xAxis, gridIndex })),
    yAxis: panels.map(({ name, type }, gridIndex) => ({
      ...{ gridIndex, type, name, nameTextStyle: { color: text } },
      axisLabel: { color: text, formatter: number },
      splitLine: { lineStyle: { color: faint } },
    })),
    series: panels.flatMap(({ lines }, axis) =>
      Object.entries(lines).map(([name, data], index) => ({
        ...{ type: 'line', name, silent: true, xAxisIndex: axis, yAxisIndex: axis, data },
        color: colours[index],
        symbol: 'circle',
      })),
    ),
  })
}

const legend = { top: 32, right: 16, textStyle: { color: text }, itemHeight: 8, silent: true, selectedMode: false }

function heading(title) {
  return { text: title, left: 16, top: 8, textStyle: { color: text, fontSize: 16 } }
}

/** 10 thousand as 10k, a million as 1M. */
function short(value) {
  return value.toLocaleString('en-US', { notation: 'compact' })
}

function draw(height, option) {
  const chart = init(null, null, { renderer: 'svg', ssr: true, width, height })
  chart.setOption({ animation: false, backgroundColor: background, textStyle: { fontFamily: 'sans-serif' }, ...option })
  const svg = chart.renderToSVGString()
  chart.dispose()
  // An image needs a title, and no styles for a pointer; ids count the charts of the process.
  const image = svg
    .replace('>\n', `>\n<title>${option.title.text}</title>\n`)
    .replaceAll(/<style.*?<\/style>\n| class="zr\d+-cls-\d+"/gs, '')
  return `${image.replaceAll(/\bzr\d+-/g, 'zr-')}\n`
}
