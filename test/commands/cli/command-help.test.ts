import { expect, test } from 'vitest'
import { readAllHelps } from '../../helpers/expect/documents.js'
import { runPlants } from '../../helpers/sandbox/run.js'

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

test.each([...helps.keys()])(
  'no line of the help of plants %s is wider than a terminal of 60 columns',
  async (path) => {
    const words = [...path.split(' ').filter(Boolean), '--help']
    const { out } = await runPlants(words, { terminals: ['stdout'], columns: 60 })
    expect(out.split('\n').filter((line) => line.length > 60)).toEqual([])
  },
)
