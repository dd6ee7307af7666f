import stringWidth from 'string-width'
import type { Output } from '../platform/io.js'

/**
 * The first page sets the widths of the columns, and later ones can only widen them. On a terminal, a text that is too
 * wide for its column is truncated; elsewhere, it moves the rest of its line.
 */
export function tableOf<Row>(
  titles: string[],
  cellsOf: (row: Row) => string[],
  { faint }: { faint(text: string): string },
  { isTerminal, columns }: Pick<Output, 'isTerminal' | 'columns'>,
) {
  let widths: number[] | undefined
  const lineOf = (row: MeasuredText[]) => {
    const texts = titles.map((title, column) => {
      const [cell = measured(''), width = 0] = [row[column], widths?.[column]]
      if (isNumber(title)) return cell.text.padStart(width)
      const shown = isTerminal ? truncate(width, cell) : cell
      return shown.text + ' '.repeat(Math.max(0, width - shown.width))
    })
    return texts.join(gap).trimEnd()
  }
  const heading = titles.map(measured)
  return (page: Row[]): string => {
    const rows = page.map((row) => cellsOf(row).map(measured))
    const widest = (widths ?? heading.map(({ width }) => width)).map((width, column) =>
      Math.max(width, ...rows.map((row) => row[column]?.width ?? 0)),
    )
    const isFirst = widths === undefined
    widths = fitWidths(titles, widest, isTerminal ? columns : undefined)
    const lines = rows.map((row) => `${lineOf(row)}\n`)
    return [isFirst ? `${faint(lineOf(heading))}\n` : '', ...lines].join('')
  }
}

const gap = '  '

/** A text is measured once, because that takes most of the time of a table. */
interface MeasuredText {
  text: string
  /** In columns of a terminal. */
  width: number
}

function measured(text: string): MeasuredText {
  return { text, width: displayWidth(text) }
}

/** Whether a column with this title is aligned to the right, and never truncated. */
function isNumber(title: string | undefined): boolean {
  return title === 'ID' || title === 'COUNT'
}

/** The greatest width of a column: each row of a page is padded to it. */
const maxWidth = 1000

/**
 * Divides the line, less the numbers, among the other columns: narrow ones keep their width, the others get equal widths.
 */
function fitWidths(titles: string[], widths: number[], columns = Infinity): number[] {
  const texts = [...widths.entries()].filter(([column]) => !isNumber(titles[column]))
  const numbers = widths.reduce(
    (sum, width, column) => (isNumber(titles[column]) ? sum + width : sum),
    0,
  )
  let room = Math.max(columns - numbers - (titles.length - 1) * gap.length, 4 * texts.length)
  const fitted = [...widths]
  for (const [index, [column, width]] of texts.toSorted(([, a], [, b]) => a - b).entries()) {
    const maximum = Math.min(width, Math.floor(room / (texts.length - index)), maxWidth)
    fitted[column] = maximum
    room -= maximum
  }
  return fitted
}

/** Truncates between grapheme clusters, so that no letter loses its accent. */
function truncate(width: number, cell: MeasuredText): MeasuredText {
  if (cell.width <= width) return cell
  let kept = ''
  let left = width - 1
  for (const { segment } of new Intl.Segmenter().segment(cell.text)) {
    left -= displayWidth(segment)
    if (left < 0) break
    kept += segment
  }
  return measured(`${kept}…`)
}

/**
 * In columns of a terminal; of a long text, that of its beginning, because measuring is slow. `string-width` divides a
 * text into grapheme clusters, which takes ten times as long, and is needed only where other characters join.
 */
export function displayWidth(text: string): number {
  if (onlyNarrow.test(text)) return text.length
  const start = text.slice(0, 2 * maxWidth).replace(marksOfLetters, '')
  let width = 0
  for (runs.lastIndex = 0; runs.lastIndex < start.length; ) {
    const run = runs.exec(start)?.groups
    if (!run) return stringWidth(start)
    const { narrow = '', wide = '', emoji } = run
    width += narrow.length + 2 * wide.length + (emoji ? 2 : 0)
  }
  return width
}

const latinGreekCyrillic = String.raw` -~\xa0-\xac\xae-\u02ff\u0370-\u0482\u048a-\u052f\u1e00-\u1fff`
const signs = String.raw`\u2010-\u2027\u2030-\u205e\u20a0-\u20bf\u2100-\u2319`
const onlyNarrow = new RegExp(`^[${latinGreekCyrillic}${signs}]*$`)
/** Such as ❤️ and 1️⃣, an emoji can begin with a sign or a digit. */
const narrow = String.raw`(?:[${latinGreekCyrillic}${signs}](?![\ufe0f\u20e3]))+`
const marks = String.raw`[\u0300-\u036f]`
/** Of decomposed text (NFD): without them, it is one run. */
const marksOfLetters = new RegExp(`(?=${marks})(?<=[A-Za-z\\xc0-\\u024f])${marks}+`, 'g')
const chineseAndJapanese = String.raw`\u3000-\u3029\u3041-\u3096\u309b-\u30ff\u3400-\u9fff\uf900-\ufaff\uff01-\uff60`
const korean = String.raw`\u3131-\u3163\uac00-\ud7a3`
const wide = `[${chineseAndJapanese}${korean}]+`
/** The modifiers of the skin join what comes before them. */
const emoji = String.raw`(?![\u{1f3fb}-\u{1f3ff}])\p{RGI_Emoji}(?!${marks})`
/** Marks have no width: they join the character before them. What begins another run joins nothing. */
const runs = new RegExp(`(?<narrow>${narrow})|${marks}+|(?<wide>${wide})|(?<emoji>${emoji})`, 'vy')
