/** Breaks a text into lines of so many columns; where there is too little room it stays one line, for the terminal to break. */
export function wrap(text: string, width: number): string[] {
  if (width < narrowest) return [text]
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return [...lines, line]
}

const narrowest = 20
