import { expect, test } from 'vitest'
import { encodeList, type ForeignList, foreignLists } from '../../helpers/sandbox/foreign-lists.js'
import { Sandbox, toJsonResult } from '../../helpers/sandbox/sandbox.js'
import { Screen } from '../../helpers/sandbox/screen.js'
import type { Terminal } from '../../helpers/sandbox/terminal.js'

// Lists of 22 languages, imported by the plain command on a terminal, and through a pipe by its
// hints.

const width = 80
const fields = ['id', 'name', 'tag'] as const

/**
 * Answers as a person does who knows the list. Counts the answers that Enter alone did not give.
 */
class Person {
  readonly #session: Terminal
  readonly #list: ForeignList
  corrections: string[] = []

  constructor(session: Terminal, list: ForeignList) {
    this.#session = session
    this.#list = list
  }

  async answerAll(): Promise<void> {
    const isMarked = ['utf8', 'utf-16le'].includes(this.#list.encoding)
    if (!isMarked) await this.#answerEncoding()
    for (const field of ['name', 'id', 'tag'] as const) {
      const wanted = this.#list.columns[fields.indexOf(field)] ?? ''
      await this.#choose(`the ${field}?`, `${wanted.normalize()} (`)
    }
    await this.#choose(`Import ${this.#list.rows.length} plants?`, 'Yes')
  }

  async #answerEncoding(): Promise<void> {
    const shown = (await this.#see('Is that right?')).join('\n')
    const { columns, rows } = this.#list
    const cells = [columns, ...rows.slice(0, 3)].flat().map(String)
    if (cells.every((cell) => shown.includes(cell.normalize()))) return this.#type('\r')
    this.corrections.push('encoding')
    this.#type('\x1b[B\r')
    await this.#session.waitForText('Which encoding?')
    this.#type(this.#list.encoding)
    await this.#session.waitForText(`❯ ${this.#list.encoding}`)
    this.#type('\r')
    await this.#session.waitForText('Is that right?')
    this.#type('\r')
  }

  /** Moves to the choice that begins so, and takes it. */
  async #choose(question: string, wanted: string): Promise<void> {
    const lines = await this.#see(question)
    const start = lines.findLastIndex((line) => line.includes(question)) + 1
    const choices = lines.slice(start)
    const active = choices.findIndex((line) => line.startsWith('❯'))
    const target = choices.findIndex((line) => line.slice(2).startsWith(wanted))
    expect(choices.map((line) => line.slice(2, 2 + wanted.length))).toContain(wanted)
    if (active !== target) this.corrections.push(question.replace(/\W|the/g, ''))
    const arrow = active < target ? '\x1b[B' : '\x1b[A'
    this.#type(`${arrow.repeat(Math.abs(target - active))}\r`)
  }

  async #see(question: string): Promise<string[]> {
    await this.#session.waitForText(question)
    await this.#session.waitForText('⏎')
    // A question is shown in composed characters.
    return new Screen(width, this.#session.screen).lines.map((line) => line.normalize())
  }

  #type(keys: string): void {
    this.#session.type(keys)
  }
}

function storedBy({ rows }: ForeignList) {
  return toJsonResult(...rows.map(([id, name, tag]) => ({ id, name, tag })))
}

test.each(foreignLists.map((list) => [list.language, list.encoding, list] as const))(
  'a list in %s (%s) is imported by answers on a terminal',
  async (_, __, list) => {
    const user = new Sandbox()
    user.write('list.csv', encodeList(list))
    const session = user.terminal('import list.csv', { NO_COLOR: '1' })
    const person = new Person(session, list)
    await person.answerAll()
    expect((await session.ended).code).toBe(0)
    expect(await user.run('list')).toEqual(storedBy(list))
    corrections.set(list.language, person.corrections.join(', '))
  },
)

/** Follows the hints of the errors to the letter. */
async function importByHints(user: Sandbox): Promise<void> {
  const options: string[] = []
  for (;;) {
    const { code, err } = await user.run(['import', 'list.csv', ...options])
    if (code === 0) return
    const [, encoding] = /line \d+ in (\S+): /.exec(err) ?? []
    const [, map] = /add --map '?(.*?)'?\n$/.exec(err) ?? []
    const isNew = encoding !== undefined || !options.includes('--map')
    expect([code, isNew, encoding ?? map], err).toEqual([2, true, expect.any(String)])
    if (encoding !== undefined) options.push('--encoding', encoding)
    else options.push('--map', map ?? '')
  }
}

test.each(foreignLists.map((list) => [list.language, list.encoding, list] as const))(
  'a list in %s (%s) is imported through a pipe by the hints',
  async (language, _, list) => {
    const user = new Sandbox()
    user.write('list.csv', encodeList(list))
    await importByHints(user)
    const isExact = (await user.run('list')).out === storedBy(list).out
    if (!isExact) misread.push(language)
  },
)

const corrections = new Map<string, string>()
const misread: string[] = []

test('Enter is the correct answer to each question about a foreign list', () => {
  const corrected = [...corrections].filter(([, answers]) => answers !== '')
  expect(Object.fromEntries(corrected)).toEqual({})
})

test('the first encoding that is detected for a foreign list is correct', () => {
  expect(misread).toMatchInlineSnapshot(`
    []
  `)
})
