/*
 * Shows what is on a terminal after a program has moved the cursor. Styles are written as in a
 * transcript, such as `^[[1m`.
 */

const controls = /\u001b\[(?<parameters>[?\d;]*)(?<command>[A-Za-z])|(?<character>[\s\S])/gu

export class Screen {
  readonly #columns: number
  readonly #rows: { character: string; style: string }[][] = [[]]
  #row = 0
  #column = 0
  #style = ''

  constructor(columns: number, output: string) {
    this.#columns = columns
    for (const { groups = {} } of output.matchAll(controls)) {
      const { character, command = '', parameters = '' } = groups
      if (character === undefined) this.#control(command, parameters)
      else this.#print(character)
    }
  }

  /** The lines of the screen, without empty ones at the end. */
  get lines(): string[] {
    const lines = this.#rows.map((row) =>
      row
        .map(({ character }) => character)
        .join('')
        .trimEnd(),
    )
    return lines.slice(0, lines.findLastIndex((line) => line !== '') + 1)
  }

  /** The same lines with their styles. A style that goes on in the next line is repeated there. */
  get styledLines(): string[] {
    return this.#rows.slice(0, this.lines.length).map((row) => {
      let style = ''
      let line = ''
      for (const cell of row) {
        if (cell.style !== style) line += (style && '^[[0m') + cell.style
        style = cell.style
        line += cell.character
      }
      return style === '' ? line.trimEnd() : `${line.trimEnd()}^[[0m`
    })
  }

  #control(command: string, parameters: string): void {
    const count = Number(parameters) || 1
    if (command === 'A') this.#row = Math.max(0, this.#row - count)
    else if (command === 'B') this.#moveDown(count)
    else if (command === 'C') this.#column += count
    else if (command === 'D') this.#column = Math.max(0, this.#column - count)
    else if (command === 'G') this.#column = count - 1
    else if (command === 'K') this.#erase(parameters)
    else if (command === 'm') this.#setStyle(parameters)
  }

  #erase(parameters: string): void {
    const from = parameters === '2' ? 0 : this.#column
    this.#rows[this.#row]?.splice(from)
  }

  /** Keeps only the last style, because this program never combines two. */
  #setStyle(parameters: string): void {
    const isEnd = ['', '0', '22', '39'].includes(parameters)
    this.#style = isEnd ? '' : `^[[${parameters}m`
  }

  #print(character: string): void {
    if (character === '\r') this.#column = 0
    else if (character === '\n') this.#moveDown(1)
    else if (character >= ' ') {
      if (this.#column === this.#columns) {
        this.#column = 0
        this.#moveDown(1)
      }
      const row = this.#rows[this.#row] ?? []
      while (row.length < this.#column) row.push({ character: ' ', style: '' })
      row[this.#column] = { character, style: this.#style }
      this.#column += 1
    }
  }

  #moveDown(count: number): void {
    this.#row += count
    while (this.#rows.length <= this.#row) this.#rows.push([])
  }
}
