import { expect, test } from 'vitest'
import { readAllHelps } from '../../helpers/expect/documents.js'

const helps = await readAllHelps()

test.each([...helps])(
  'the help of plants %s has the description, usage, examples, arguments and options in this order',
  (_, help) => {
    const titles = ['Usage:', 'Examples:', 'Arguments:', 'Commands:', 'Options:']
    const found = Array.from(help.matchAll(/^\w+:/gm), ([title]) => title)
    const positions = found.map((title) => titles.indexOf(title)).filter((index) => index !== -1)
    expect(help).toMatch(/^(?!Usage)[A-Z]/)
    expect(positions).toEqual(positions.toSorted())
    expect(positions).toEqual(expect.arrayContaining([0, 4]))
  },
)
