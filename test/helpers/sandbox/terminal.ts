import { closeSync, constants, openSync } from 'node:fs'
import { spawn } from '@lydell/node-pty'
import { onTestFinished } from 'vitest'
import { checkSecretsAtEnd } from '../expect/secrets.js'
import { waitFor } from './wait.js'

export type Terminal = ReturnType<typeof openTerminal>

/** Runs a program on its own terminal. If it still runs when the test ends, it is killed. */
export function openTerminal(
  program: string,
  args: string[],
  folder: string,
  env: Record<string, string>,
  { columns = 160, rows = 24, limitMs }: { columns?: number; rows?: number; limitMs?: number } = {},
) {
  const name = 'xterm-256color'
  const pty = spawn(program, args, {
    name,
    cols: columns,
    rows,
    cwd: folder,
    env: { PATH: process.env['PATH'] ?? '', HOME: folder, TERM: name, ...env },
  })
  // When the last program closes a terminal, Node.js may drop the output that it has not read yet.
  // So the terminal stays open until node-pty reports the end, 0.2 s after the end of the program.
  // The types of node-pty lack `ptsName`.
  const { ptsName } = pty as unknown as { ptsName?: string } // Windows has none.
  const descriptor = ptsName && openSync(ptsName, constants.O_RDWR | constants.O_NOCTTY)
  let screen = ''
  let searchStart = 0
  let hasEnded = false
  let checkScreen = () => {}
  pty.onData((data) => {
    screen += data
    checkScreen()
  })
  const ended = new Promise<{ code: number; screen: string }>((resolve) => {
    pty.onExit(({ exitCode, signal }) => {
      hasEnded = true
      if (descriptor) closeSync(descriptor)
      resolve({ code: signal ? 128 + signal : exitCode, screen })
    })
  })
  checkSecretsAtEnd(ended.then(() => ({ argv: args, out: screen })))
  onTestFinished(() => {
    if (!hasEnded) process.kill(pty.pid, 'SIGKILL')
  })
  /** Resolves when the screen has the text, after the text of the previous call. */
  const waitForText = (text: string) => {
    const quotedText = JSON.stringify(text)
    const textShown = new Promise<void>((resolve, reject) => {
      checkScreen = () => {
        const index = screen.indexOf(text, searchStart)
        if (index === -1) return
        searchStart = index + text.length
        resolve()
      }
      checkScreen()
      const missing = `The program ended without showing ${quotedText}`
      void ended.then(() => reject(new Error(`${missing}:\n${screen}`)))
    })
    return waitFor(textShown, () => `the text ${quotedText} on the terminal:\n${screen}`, limitMs)
  }
  return {
    get screen() {
      return screen
    },
    type: (text: string) => pty.write(text),
    waitForText,
    /** Waits for the questions one after the other, and types the answer of each. */
    answer: async (...answers: [question: string, text: string][]) => {
      for (const [question, text] of answers) {
        await waitForText(question)
        pty.write(text)
      }
    },
    kill: (signal: string) => pty.kill(signal),
    /**
     * Closes the terminal. The system then sends SIGHUP. node-pty would send another one later,
     * which could end a program that has handled the first and is about to exit. The types of
     * node-pty lack `destroy`.
     */
    close: () => {
      const terminal = pty as unknown as { destroy(): void; kill(): void }
      terminal.kill = () => undefined
      terminal.destroy()
    },
    /** Resolves when the program has ended. The limit of this wait begins now. */
    get ended() {
      const command = [program, ...args].join(' ')
      return waitFor(
        ended,
        () => `the end of ${command}, whose terminal shows:\n${screen}`,
        limitMs,
      )
    },
  }
}
