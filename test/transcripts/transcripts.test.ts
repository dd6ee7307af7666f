import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { replay } from '../helpers/transcript.js'

const names = readdirSync(import.meta.dirname).filter((name) => name.endsWith('.txt'))

test.each(names)('%s is what its commands print', async (name) => {
  const path = join(import.meta.dirname, name)
  await expect(await replay(readFileSync(path, 'utf8'))).toMatchFileSnapshot(path)
})
