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

test('an import can read the next chunk before a plain chunk is created or mapped', async () => {
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
  if (!first || !('plainChunk' in first)) throw new Error('The first chunk is not plain')
  const { value: second } = await items.next()
  expect(linesRead).toEqual([1, 2])
  expect(second).toHaveProperty('plainChunk')
  const mapped = [...first.mapRecords()].flatMap(({ changes }) => changes)
  expect(mapped).toMatchObject([{ type: 'create', plant: { id: 1n, name: 'Fern' } }])
  expect(await items.next()).toEqual({ done: true, value: undefined })
})
