// Starts `fray lsp` for files of fray, and restarts it on demand.
import * as vscode from "vscode";
import { LanguageClient, LanguageClientOptions, ServerOptions } from "vscode-languageclient/node";

let client: LanguageClient | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  context.subscriptions.push(
    vscode.commands.registerCommand("fray.restart", restart),
    vscode.workspace.onDidChangeConfiguration(async (change) => {
      if (change.affectsConfiguration("fray.path")) {
        await restart();
      }
    }),
  );
  await start();
}

export async function deactivate(): Promise<void> {
  await client?.dispose();
  client = undefined;
}

async function restart(): Promise<void> {
  await deactivate();
  await start();
}

async function start(): Promise<void> {
  const command = vscode.workspace.getConfiguration("fray").get<string>("path", "fray");
  const server: ServerOptions = {
    command,
    args: ["lsp"],
    options: { cwd: vscode.workspace.workspaceFolders?.[0]?.uri.fsPath },
  };
  const options: LanguageClientOptions = {
    documentSelector: [{ language: "fray" }],
    synchronize: { fileEvents: vscode.workspace.createFileSystemWatcher("**/*.{hcl,frayvars}") },
  };
  client = new LanguageClient("fray", "fray", server, options);
  try {
    await client.start();
  } catch (err) {
    void vscode.window.showErrorMessage(
      `fray: cannot start "${command} lsp": ${String(err)}. Install fray, or set fray.path to where it is.`,
    );
  }
}
