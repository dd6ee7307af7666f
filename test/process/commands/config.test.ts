import { stripVTControlCharacters } from 'node:util'
import { describe, expect, test } from 'vitest'
import { gardener } from '../../helpers/gardener.js'
import { terminal } from '../../helpers/terminal.js'

describe('a saved setting holds for other commands:', () => {
  test('on a terminal, too', async () => {
    const user = gardener()
    const session = terminal(['config', 'set', 'timeout', '1m'], user.home, user.env)
    const { code, screen } = await session.ended
    expect({ code, screen: stripVTControlCharacters(screen) }).toEqual({ code: 0, screen: 'Set timeout to 1m\r\n' })
  })
})
