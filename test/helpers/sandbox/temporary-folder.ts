import { mkdtempSync, realpathSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

/** An empty folder that is gone when the test is over. */
export function createTemporaryFolder(): string {
  const folder = mkdtempSync(join(realpathSync(tmpdir()), 'plants-'))
  // Windows removes no file before the stream that read it has closed it.
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }))
  return folder
}
