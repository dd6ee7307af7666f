import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { plants } from '../../helpers/process.js'
import { malformedTokens, OutputUser } from '../../helpers/redacting.js'

describe('a malformed token is not shown', () => {
  test.each(malformedTokens)('in PLANTS_SERVE_TOKEN or the token file of a service: %j', async (token) => {
    const user = new OutputUser()
    const file = join(user.folder, 'tokens.txt')
    writeFileSync(file, `${token}\n`)
    const serve = ['serve', '--port', '0']
    if (!token.includes('\u001b') && !token.includes('\n')) {
      expect((await plants([...serve, '--token-file', file], user.folder)).code).toBe(2)
    }
    expect((await plants(serve, user.folder, { env: { PLANTS_SERVE_TOKEN: token } })).code).toBe(2)
  })
})
