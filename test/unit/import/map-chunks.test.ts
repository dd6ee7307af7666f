import { expect, test } from 'vitest'
import type { Chunk } from '../../../src/formats/chunk.js'
import { PlainChunk } from '../../../src/formats/plain-chunk.js'
import { createPlainJsonFormat } from '../../../src/formats/plain-json.js'
import { mapChunks } from '../../../src/import/map-chunks.js'

const format = createPlainJsonFormat((text, line, chunk) => chunk.add(text.trimEnd(), line))

function createPlainChunk(line: number): Chunk {
  const text = `{"id":${line},"name":"Fern"}\n`
  const chunk = new PlainChunk(format)
  chunk.addText(text, text.length, line)
  return chunk
}

test.each([
  { areCreated: true, title: 'the next rows follow', kinds: ['rows'] },
  { areCreated: false, title: 'their records come first', kinds: ['chunk', 'rows'] },
])(
  'the next chunk is read while rows are created ($areCreated: $title)',
  async ({ areCreated, kinds }) => {
    const linesRead: number[] = []
    async function* readChunks() {
      for (const line of [1, 2]) {
        linesRead.push(line)
        yield createPlainChunk(line)
      }
    }
    const plan = { inputs: [], maxErrors: 1, map: {}, ifExists: 'same' as const }
    const options = { plan, name: 'plants', state: {}, skippedRecords: 0, keyPrefix: undefined }
    const items = mapChunks({ chunks: readChunks() }, options)
    const { value: first } = await items.next()
    if (!first || !('rows' in first)) throw new Error('The first item has no rows')
    let settle = (_: boolean) => {}
    first.areCreated = new Promise((resolve) => {
      settle = resolve
    })
    let next = items.next()
    await new Promise(setImmediate)
    expect(linesRead).toEqual([1, 2])
    settle(areCreated)
    for (const kind of kinds) {
      const { value } = await next
      expect(value).toHaveProperty(kind)
      if (value && 'rows' in value) value.areCreated = Promise.resolve(true)
      next = items.next()
    }
    expect(await next).toEqual({ done: true, value: undefined })
  },
)
