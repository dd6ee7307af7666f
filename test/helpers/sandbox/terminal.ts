import { spawn } from '@lydell/node-pty'
import { checkSecretsAtEnd } from '../expect/secrets.js'

export type Terminal = ReturnType<typeof openTerminal>

export function openTerminal(
  program: string,
  args: string[],
  folder: string,
  env: Record<string, string>,
  columns = 160,
) {
  const name = 'xterm-256color'
  const pty = spawn(program, args, {
    ...{ name, cols: columns, rows: 24, cwd: folder },
    env: { PATH: process.env['PATH'] ?? '', HOME: folder, TERM: name, ...env },
  })
  let screen = ''
  let searchStart = 0
  let checkScreen = () => {}
  pty.onData((data) => {
    screen += data
    checkScreen()
  })
  const ended = new Promise<{ code: number; screen: string }>((resolve) => {
    pty.onExit(({ exitCode, signal }) =>
      resolve({ code: signal ? 128 + signal : exitCode, screen }),
    )
  })
  checkSecretsAtEnd(ended.then(() => ({ argv: args, out: screen })))
  /** Resolves when the screen has the text, after the text of the previous call. */
  const waitForText = (text: string) =>
    new Promise<void>((resolve, reject) => {
      checkScreen = () => {
        const at = screen.indexOf(text, searchStart)
        if (at < 0) return
        searchStart = at + text.length
        resolve()
      }
      checkScreen()
      const missing = `The program ended without showing ${JSON.stringify(text)}`
      void ended.then(() => reject(new Error(`${missing}:\n${screen}`)))
    })
  return {
    get screen() {
      return screen
    },
    type: (text: string) => pty.write(text),
    waitForText: waitForText,
    /** Waits for the questions one after the other, and types the answer of each. */
    answer: async (...answers: [question: string, text: string][]) => {
      for (const [question, text] of answers) {
        await waitForText(question)
        pty.write(text)
      }
    },
    kill: (signal: string) => pty.kill(signal),
    ended,
  }
}
